"""Judges one file by hand, in full, and writes nothing: what `prime-core validate` does.

The run may still go on: nothing of it is locked or changed.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import FormatError, RunError, Statement
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.records import Dispatch, Key
from prime_core.store.submission import FILE_LIMIT, read_submission
from prime_core.store.verdicts import Verdict
from prime_core.store.view import read_dispatch
from prime_core.validation.auditing import audit
from prime_core.validation.context import FileContext
from prime_core.validation.judging import ask, verdict_of
from prime_core.validation.setup import open_tools
from prime_core.validation.statements import parse_statement
from prime_core.validation.validator import Validator

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig
    from prime_core.store.objects import ObjectStore


@dataclass(frozen=True, slots=True)
class ByHand:
    """What judging a file by hand found.

    Attributes:
        verdict: this judgement's; it counts nowhere.
        seconds: of each check.
        standing: verdicts that count, on whatever bytes were submitted under this name.
    """

    verdict: Verdict
    seconds: Mapping[str, float]
    standing: tuple[Verdict, ...]


def validate_file(config: RunConfig, file: Path, *, unsigned: bool = False) -> ByHand:
    """The verdict on a file, and those that its run has already.

    Args:
        file: a submission, in the run or anywhere; its statement lies beside it.
        unsigned: leave out the check `identity`, for a file that was taken from elsewhere.

    Raises:
        RunError: the file says of which submission it is neither by its name nor in its rows, or
            nobody announced it.
        PrimeError: the run can't be opened.
    """
    data = _read(file)
    signer = Signer(secrets.token_bytes(32))  # this verdict counts nowhere
    with open_tools(config, signer=signer) as tools:
        key = _key(file, data)
        dispatch = _dispatch(tools.store, key)
        validator = Validator(tools)
        validator.view.refresh()
        sha256 = hashlib.sha256(data).hexdigest()
        signature, seed = audit(signer, tools.run_id, key, sha256)
        context, around = validator.open_file(key, dispatch, data, sha256, seed, full=True)
        beside = file.with_suffix(".sig.json")
        if beside.is_file():
            own = replace(around, statement=lambda: _statement(beside))
            context = FileContext(own, context.view, data, seed=seed, full=True, spot_groups=0)
        checks = [each for each in tools.checks if not (unsigned and each.name == "identity")]
        judgement = ask(checks, context)
        verdict = verdict_of(judgement, context, signature, trusted=not unsigned)
        return ByHand(verdict, judgement.seconds, tuple(tools.book.of(key)))


def _read(file: Path) -> bytes:
    if file.stat().st_size > FILE_LIMIT:
        raise RunError(
            f"a submission has at most {FILE_LIMIT} bytes", where=str(file), fix="refuse it"
        )
    return file.read_bytes()


def _key(file: Path, data: bytes) -> Key:
    """By its place in a run, else by what its rows say."""
    parts = file.resolve().parts
    if len(parts) >= 3 and parts[-2] == "submissions":
        try:
            node, n = layout.parse_member(file.name)
        except FormatError:
            node, n = "", -1
        step = layout.parse_numbered(parts[-3])
        if step is not None and n >= 0:
            return (step, node, n)
    try:
        first = read_submission(data).rows[0]
    except FormatError as error:
        raise RunError(
            f"neither its place nor its rows say which submission it is: {error.what}",
            where=str(file),
            fix="name a file below a run's steps/<step>/submissions",
        ) from error
    return (first.step, first.node, first.submission)


def _dispatch(store: ObjectStore, key: Key) -> Dispatch:
    path = layout.dispatch_path(*key)
    found = read_dispatch(store, key) if store.exists(path) else None
    if found is None:
        raise RunError(
            "nobody announced this submission", where=path, fix="name the file's own run"
        )
    return found


def _statement(beside: Path) -> Statement:
    return parse_statement(beside.read_bytes(), where=str(beside))
