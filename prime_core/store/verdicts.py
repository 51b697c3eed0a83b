"""Verdicts: what a validator signed about one submission's bytes, written once and read strictly.

Validators write them, the intake takes accepted ones, anybody may verify them. A verdict names
step, node, n and SHA-256, so that other bytes under the same name have none.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Collection
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from pydantic.dataclasses import dataclass

from prime_core.api.errors import FormatError, IntegrityError, RunError
from prime_core.signing import Signer, read_signed, signed_bytes
from prime_core.store import layout
from prime_core.store.objects import MESSAGE_LIMIT, ObjectStore
from prime_core.store.record import STRICT, Count, Hex32, Name, Node, Record, Text
from prime_core.store.records import Key

logger = logging.getLogger("prime_core.store")

FORMAT: Literal["prime-core/verdict/2"] = "prime-core/verdict/2"
MAX_FINDINGS = 64

_NAME = re.compile(r"([a-z0-9-]{1,64}-\d{5,18})-([0-9a-f]{64})\.json")

Severity = Literal["slash", "reject", "drop", "warn"]
Signature = Annotated[str, Field(pattern=r"^0x[0-9a-f]{130}\z")]


@dataclass(frozen=True, config=STRICT)
class VerdictFinding:
    """One finding: which check, how grave, where, why."""

    check: Name
    severity: Severity
    reason: Text
    row: Count | None
    chunk: Count | None


@dataclass(frozen=True, config=STRICT)
class DroppedGroup:
    """A group of an accepted file that may not train, nobody's fault."""

    id: Name
    check: Name
    reason: Text


@dataclass(frozen=True, config=STRICT)
class CheckRun:
    """A check that was asked, and how many of the file's rows it looked at."""

    check: Name
    rows: Count


@dataclass(frozen=True, config=STRICT)
class Verdict(Record):
    """A validator's word on one submission.

    Attributes:
        sha256, size: of the bytes that were judged.
        groups: that the dispatch announced.
        signed: whether the node's own statement about these bytes under this name lies beside
            them: whatever else is said of the file isn't surely the node's doing.
        decision: of the whole file.
        severity: the gravest finding's that decided; "" where accepted; drop where the file could
            not be judged, which accuses nobody.
        check, reason: of that finding; "" where accepted.
        findings: all of them, at most `MAX_FINDINGS`.
        dropped: groups of an accepted file that may not train.
        blameless: whether nothing that decided or dropped a group is surely the node's doing: the
            file then adds to its node's record, or leaves it, as if there was nothing.
        checks: what was asked, in order.
        full: whether the file was checked in full.
        audit: the validator's signature over `audit_message`, whose hash seeded every draw: anyone
            may verify that the draw wasn't chosen.
    """

    run_id: Name
    step: Count
    node: Node
    n: Count
    sha256: Hex32
    size: Annotated[int, Field(ge=0, le=2**53)]
    groups: Count
    signed: bool
    decision: Literal["accepted", "rejected"]
    severity: Literal["", "drop", "reject", "slash"]
    check: Annotated[str, Field(max_length=256)]
    reason: Text
    findings: Annotated[tuple[VerdictFinding, ...], Field(max_length=MAX_FINDINGS)]
    dropped: Annotated[tuple[DroppedGroup, ...], Field(max_length=65536)]
    checks: Annotated[tuple[CheckRun, ...], Field(max_length=256)]
    full: bool
    audit: Signature
    blameless: bool = False
    format: Literal["prime-core/verdict/2"] = FORMAT

    @model_validator(mode="after")
    def _is_consistent(self) -> Verdict:
        accepted = self.decision == "accepted"
        if accepted == bool(self.check) or accepted == bool(self.severity):
            raise ValueError("exactly a rejection names its check and severity")
        if self.dropped and not accepted:
            raise ValueError("groups are dropped from accepted files only")
        return self

    @property
    def key(self) -> Key:
        """(step, node, n)."""
        return (self.step, self.node, self.n)


@dataclass(frozen=True, config=STRICT)
class SignedVerdict:
    """A verdict and the address that signed it."""

    verdict: Verdict
    validator: Name


def audit_message(run_id: str, key: Key, sha256: str) -> bytes:
    """What a validator signs before it judges; the signature's hash is the seed of its draws."""
    step, node, n = key
    text = json.dumps(["prime-core/audit/1", run_id, step, node, n, sha256], separators=(",", ":"))
    return text.encode()


def verdict_bytes(verdict: Verdict, signer: Signer) -> bytes:
    """The signed object."""
    return signed_bytes(signer, asdict(verdict))


def parse_verdict(
    data: bytes, validators: Collection[str], *, where: str | None = None
) -> SignedVerdict:
    """Parse and verify one verdict.

    Args:
        validators: addresses whose word counts.
        where: the object's path, for the message.

    Raises:
        FormatError: not a verdict.
        IntegrityError: a wrong signature, or a signer who is no validator of the run.
    """
    signed = read_signed(data, None, where=where)
    if signed.signer not in validators:
        raise IntegrityError(
            f"{signed.signer} is no validator of this run",
            where=where,
            fix="name its address in validation.addresses if its word counts",
        )
    text = json.dumps(signed.payload, ensure_ascii=False).encode()
    return SignedVerdict(Verdict.from_json(text, where=where), signed.signer)


def write_verdict(store: ObjectStore, verdict: Verdict, signer: Signer) -> None:
    """Write a verdict once.

    Raises:
        ObjectExistsError: these bytes of this submission have their verdict.
    """
    path = layout.verdict_path(*verdict.key, verdict.sha256)
    store.put(path, verdict_bytes(verdict, signer))


class VerdictBook:
    """The verdicts of a run, each read and verified once.

    Args:
        store: the run's store.
        run_id: verdicts of other runs don't count.
        validators: addresses whose word counts.

    Attributes:
        other_format: of a verdict that a validator signed and this version can't read; "" for none.
    """

    def __init__(self, store: ObjectStore, run_id: str, validators: Collection[str]) -> None:
        self._store, self._run_id = store, run_id
        self._validators = frozenset(validators)
        self.other_format = ""
        self._read: set[str] = set()
        self._found: dict[Key, list[SignedVerdict]] = {}

    def refresh(self, step: int) -> list[Verdict]:
        """Read what is new of one step; objects that are no verdict are logged once, left out."""
        new = []
        for name in self._store.list(layout.verdicts_dir(step)):
            path = f"{layout.verdicts_dir(step)}/{name}"
            if path in self._read:
                continue
            self._read.add(path)
            try:
                signed = self._parse(path, name, step)
            except (FormatError, IntegrityError) as error:
                logger.warning("ignored: %s", error)
                continue
            self._found.setdefault(signed.verdict.key, []).append(signed)
            new.append(signed.verdict)
        return new

    def of(self, key: Key) -> list[Verdict]:
        """The verdicts on one submission's name; more than one only where its bytes changed."""
        return [signed.verdict for signed in self._found.get(key, [])]

    def check_formats(self) -> None:
        """Refuse a run in which a validator's verdict of another format was read.

        Raises:
            RunError: names the format.
        """
        if self.other_format:
            raise RunError(
                f"the run holds verdicts of format {self.other_format}; this version's is {FORMAT}",
                fix="start a new run, or go on with the version that wrote them",
            )

    def forget(self, before: int) -> None:
        """Drop what is known of steps before this one; `refresh` of them would read it again."""
        for key in [key for key in self._found if key[0] < before]:
            del self._found[key]

    def _parse(self, path: str, name: str, step: int) -> SignedVerdict:
        data = self._store.get(path, MESSAGE_LIMIT)
        try:
            signed = parse_verdict(data, self._validators, where=path)
        except FormatError:
            self.other_format = self.other_format or self._format_of(data)
            raise
        verdict = signed.verdict
        if verdict.run_id != self._run_id or verdict_name(verdict.key, verdict.sha256) != name:
            raise FormatError("it names another submission or run", where=path, fix="remove it")
        if verdict.step != step:
            raise FormatError(f"it is of step {verdict.step}", where=path, fix="remove it")
        return signed

    def _format_of(self, data: bytes) -> str:
        """The other format of a validator's verdict; "" for anything else."""
        try:
            signed = read_signed(data, None)
        except (FormatError, IntegrityError):
            return ""
        said = str(signed.payload.get("format"))[:64]
        family = FORMAT.rpartition("/")[0]
        other = said.startswith(f"{family}/") and said != FORMAT
        return said if other and signed.signer in self._validators else ""


def verdict_name(key: Key, sha256: str) -> str:
    """Base name of a verdict's object."""
    return layout.verdict_path(*key, sha256).rpartition("/")[2]


def parse_verdict_name(name: str) -> tuple[str, int, str]:
    """The (node, n, sha256) of a verdict's base name; FormatError."""
    found = _NAME.fullmatch(name)
    if not found:
        raise FormatError(f"{name!r} isn't named <node>-<n>-<sha256>", fix="remove the file")
    node, n = layout.parse_member(f"{found[1]}.json")
    return node, n, found[2]


def payload_of(verdict: Verdict) -> dict[str, Any]:
    """The verdict as plain JSON, for reports."""
    found: dict[str, Any] = json.loads(verdict.to_json())
    return found
