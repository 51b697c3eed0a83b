"""Verdicts: signed, strict, named by the bytes they are about."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from prime_core.api import FormatError, IntegrityError
from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout
from prime_core.store.objects import ObjectExistsError, ObjectStore
from prime_core.store.verdicts import (
    CheckRun,
    DroppedGroup,
    Verdict,
    VerdictBook,
    VerdictFinding,
    parse_verdict,
    parse_verdict_name,
    payload_of,
    verdict_bytes,
    verdict_name,
    write_verdict,
)

_names = itertools.count()
SIGNER, STRANGER = Signer(bytes(31) + b"\x01"), Signer(bytes(31) + b"\x02")
KNOWN = frozenset({SIGNER.address})
ACCEPTED = Verdict(
    run_id="run-1",
    step=3,
    node="node-a",
    n=2,
    sha256="ab" * 32,
    size=100,
    groups=2,
    signed=True,
    decision="accepted",
    severity="",
    check="",
    reason="",
    findings=(VerdictFinding("rewards", "drop", "a limit", 4, None),),
    dropped=(DroppedGroup("3-node-a-2-1", "rewards", "a limit"),),
    checks=(CheckRun("schema", 8),),
    full=True,
    audit="0x" + "0" * 130,
)
REJECTED = replace(
    ACCEPTED, decision="rejected", severity="slash", check="replay", reason="r", dropped=()
)


@pytest.fixture
def store() -> ObjectStore:
    return ObjectStore(f"memory://verdicts-{next(_names)}")


@pytest.mark.parametrize("verdict", [ACCEPTED, REJECTED])
def test_a_verdict_reads_back_with_its_signer(verdict: Verdict) -> None:
    found = parse_verdict(verdict_bytes(verdict, SIGNER), KNOWN)
    assert (found.verdict, found.validator) == (verdict, SIGNER.address)


def test_a_stranger_s_verdict_counts_nothing() -> None:
    with pytest.raises(IntegrityError, match="no validator"):
        parse_verdict(verdict_bytes(ACCEPTED, STRANGER), KNOWN)


@pytest.mark.parametrize(
    "change",
    [
        {"decision": "late"},
        {"decision": "accepted", "check": "x"},
        {"severity": "slash"},
        {"sha256": "AB" * 32},
        {"n": -1},
        {"extra": 1},
        {"format": "prime-core/verdict/1"},
        {"audit": "0x00"},
        {"findings": [{"check": "a", "severity": "bad", "reason": "", "row": None, "chunk": None}]},
        {"decision": "rejected", "severity": "reject", "check": "x"},  # with dropped groups
    ],
)
def test_a_signed_verdict_that_breaks_the_format_is_refused(change) -> None:
    data = signed_bytes(SIGNER, {**payload_of(ACCEPTED), **change})
    with pytest.raises(FormatError):
        parse_verdict(data, KNOWN)


def test_an_edited_verdict_is_refused() -> None:
    text = json.loads(verdict_bytes(REJECTED, SIGNER))
    text["decision"], text["severity"], text["check"] = "accepted", "", ""
    data = json.dumps(text, sort_keys=True, separators=(",", ":")).encode()
    with pytest.raises(IntegrityError):
        parse_verdict(data, KNOWN)


def test_the_name_is_that_of_the_bytes() -> None:
    name = verdict_name(ACCEPTED.key, ACCEPTED.sha256)
    assert parse_verdict_name(name) == ("node-a", 2, "ab" * 32)
    for bad in ("node-a-00002.json", f"node-a-2-{'ab' * 32}.json", name.replace("ab", "AB", 1)):
        with pytest.raises(FormatError):
            parse_verdict_name(bad)


def test_a_verdict_is_written_once(store: ObjectStore) -> None:
    write_verdict(store, ACCEPTED, SIGNER)
    with pytest.raises(ObjectExistsError):
        write_verdict(store, REJECTED, SIGNER)
    other = replace(REJECTED, sha256="cd" * 32)
    write_verdict(store, other, SIGNER)
    book = VerdictBook(store, "run-1", KNOWN)
    assert {v.sha256 for v in book.refresh(3)} == {"ab" * 32, "cd" * 32}
    assert {v.sha256 for v in book.of(ACCEPTED.key)} == {"ab" * 32, "cd" * 32}
    assert book.refresh(3) == []


def test_what_is_no_verdict_of_the_run_is_left_out(store: ObjectStore, caplog) -> None:
    good = verdict_bytes(ACCEPTED, SIGNER)
    path = layout.verdict_path(3, "node-a", 2, "ab" * 32)
    store.put(path.replace("node-a", "node-b"), good)  # of another node
    store.put(path.replace("ab" * 32, "cd" * 32), good)  # of other bytes
    store.put(f"{layout.verdicts_dir(3)}/notes.txt", b"hello")
    store.put(path, verdict_bytes(replace(ACCEPTED, run_id="run-2"), SIGNER))
    book = VerdictBook(store, "run-1", KNOWN)
    assert book.refresh(3) == []
    assert caplog.text.count("ignored") == 4
