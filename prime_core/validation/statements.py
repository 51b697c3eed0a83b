"""Reads the signed statement beside a submission, whoever may have written it.

Called by the context of a file; who should have signed it is the check's to ask.
"""

from __future__ import annotations

from typing import Any

from prime_core.api import FormatError, Statement
from prime_core.signing import read_signed
from prime_core.store import layout
from prime_core.store.objects import ObjectMissingError, ObjectStore
from prime_core.store.records import Key

LIMIT = 4096  # bytes; a statement has about 400


def read_statement(store: ObjectStore, key: Key) -> Statement | None:
    """The statement of a submission, its signature verified; None where there is none.

    Raises:
        FormatError: not a statement.
        IntegrityError: the signature is wrong.
    """
    path = layout.submission_signature_path(*key)
    try:
        data = store.get(path, LIMIT)
    except ObjectMissingError:
        return None
    return parse_statement(data, where=path)


def parse_statement(data: bytes, *, where: str) -> Statement:
    """A statement from its bytes; errors as `read_statement`."""
    signed = read_signed(data, None, where=where)
    kinds: dict[str, type] = {
        "run_id": str,
        "step": int,
        "node": str,
        "n": int,
        "sha256": str,
        "size": int,
    }
    values: dict[str, Any] = signed.payload
    if set(values) != set(kinds) or any(type(values[name]) is not kinds[name] for name in kinds):
        raise FormatError("not a statement about a submission", where=where, fix="refuse it")
    return Statement(**values, signer=signed.signer)
