"""Writes a submission and its signed statement, in that order, once.

Called by the worker. A submission without a statement is one whose writer was killed between the
two: its bytes stand, and only the statement is added.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout
from prime_core.store.submission import FILE_LIMIT, RolloutRow, SubmissionMeta, write_submission

if TYPE_CHECKING:
    from prime_core.store.objects import ObjectStore
    from prime_core.store.records import Dispatch


def submit(
    store: ObjectStore,
    dispatch: Dispatch,
    rows: Sequence[RolloutRow],
    meta: SubmissionMeta,
    signer: Signer,
) -> int:
    """Write the rows of a dispatch; returns the file's bytes.

    Raises:
        FormatError: a row that a reader would refuse.
        StoreError: the objects can't be written.
    """
    data = write_submission(rows, meta)
    store.put_same(layout.submission_path(*dispatch.key), data)
    add_statement(store, dispatch, data, signer)
    return len(data)


def add_statement(store: ObjectStore, dispatch: Dispatch, data: bytes, signer: Signer) -> None:
    """Write the signed statement over a submission's bytes."""
    statement = {
        "run_id": dispatch.run_id,
        "step": dispatch.step,
        "node": dispatch.node,
        "n": dispatch.n,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }
    path = layout.submission_signature_path(*dispatch.key)
    store.put_same(path, signed_bytes(signer, statement))


def complete_statement(store: ObjectStore, dispatch: Dispatch, signer: Signer) -> bool:
    """Add the statement that a killed predecessor left out; True if there was one to add."""
    path = layout.submission_path(*dispatch.key)
    signature = layout.submission_signature_path(*dispatch.key)
    if not store.exists(path) or store.exists(signature):
        return False
    add_statement(store, dispatch, store.get(path, FILE_LIMIT), signer)
    return True
