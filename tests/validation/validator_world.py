"""A validator of toy submissions over a store in memory, as the tests of `validator` use it."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

from prime_sanity_checks.identity import Identity
from prime_sanity_checks.schema import Schema, SchemaParams

from prime_core.api import Finding, NodeFacts, StoreError, SubmissionView
from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Dispatch, Key
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import read_submission, write_submission
from prime_core.store.verdicts import Verdict, VerdictBook
from prime_core.testing.toy_submission import SEAL, toy_submission
from prime_core.validation.attempts import Attempts
from prime_core.validation.auditing import Policy
from prime_core.validation.judging import NamedCheck
from prime_core.validation.pending import Pending
from prime_core.validation.put_off import PutOff
from prime_core.validation.tools import ValidatorTools
from prime_core.validation.validator import Validator

RUN, STEP, VERSION = "toy-run", 3, 1
RULES = StepRules(steps=10, groups_per_step=4, level=2, max_lag=2)
META = SubmissionMeta(RUN, "l" * 64, "toy")
AUTHOR, EARLY, LATE = "node", "a-thief", "z-thief"
NODES = {name: Signer(bytes(31) + bytes([i])) for i, name in enumerate((AUTHOR, EARLY, LATE), 1)}
VALIDATORS = [Signer(bytes(31) + bytes([i])) for i in (21, 22)]
_names = itertools.count()


class Direct:
    """A reader that reads here."""

    def read(self, data: bytes, *, time_limit_s: float, memory_mb: int):
        return read_submission(data)


class Bad:
    """Rejects rewards above 1, and spoils rows so."""

    stage = "row"

    def __init__(self) -> None:
        self.full: dict[tuple[str, int], bool] = {}

    def check(self, submission: SubmissionView, context) -> Sequence[Finding]:
        self.full[submission.node, submission.n] = context.full
        high = [i for i, row in enumerate(submission.rows) if (row.reward or 0) > 1]
        return [Finding("slash", "too high", index) for index in high[:1]]

    def decoy(self, submission: SubmissionView, context):
        return [row if row.reward is None else replace(row, reward=2.0) for row in submission.rows]


class Away(ObjectStore):
    """A store in which some objects can't be read for a while."""

    missing: dict[str, int] = {}  # noqa: RUF012  # path: times

    def get(self, path: str, limit: int | None = None) -> bytes:
        if self.missing.get(path, 0) > 0:
            self.missing[path] -= 1
            raise StoreError("connection reset", where=path)
        return super().get(path, limit)


def rows_of(node: str, n: int, groups: int = 2) -> list[RolloutRow]:
    return [
        replace(
            row,
            node=node,
            submission=n,
            policy_version=VERSION,
            group_id=f"{STEP}-{node}-{n}-{row.group_id.rpartition('-')[2]}",
        )
        for row in toy_submission(groups=groups, seed=n)[0].rows
        if isinstance(row, RolloutRow)
    ]


@dataclass
class World:
    folder: Path
    decoy_every: int = 0
    max_rejected: int = 2
    share: float = 1.0
    newcomer_files: int = 0
    bad: Bad = field(default_factory=Bad)
    now: float = 0.0

    def __post_init__(self) -> None:
        self.store = Away(f"memory://validator-{next(_names)}")
        self.store.missing = {}
        for version in range(VERSION + 1):
            self.store.put(layout.policy_seal_path(version), b"{}")

    def submit(
        self,
        node: str,
        n: int,
        data: bytes | None = None,
        *,
        signer: str | None = "",
        groups: int = 2,
        version: int = VERSION,
        **changes,
    ) -> bytes:
        """Announce and submit a file; `signer` None for no statement, "" for the node itself."""
        if data is None:
            rows = [replace(row, **changes) for row in rows_of(node, n, groups)]
            data = write_submission(rows, META)
        dispatch = Dispatch(RUN, STEP, node, n, version, SEAL.hex(), groups, 4, "default")
        self.store.put(layout.dispatch_path(*dispatch.key), dispatch.to_json())
        self.store.put(layout.submission_path(*dispatch.key), data)
        if signer is not None:
            said = {"run_id": RUN, "step": STEP, "node": node, "n": n, "size": len(data)}
            said["sha256"] = hashlib.sha256(data).hexdigest()
            path = layout.submission_signature_path(*dispatch.key)
            self.store.put(path, signed_bytes(NODES[signer or node], said))
        return data

    def validator(self, index: int = 0, of: int = 1) -> Validator:
        signers = [each.address for each in VALIDATORS[:of]]
        own = VALIDATORS[index]
        facts = replace(toy_submission()[1].run, max_groups=2)
        checks = [
            NamedCheck("identity", Identity()),
            NamedCheck("schema", Schema(SchemaParams())),
            NamedCheck("bad", self.bad),
        ]
        made = Validator(
            ValidatorTools(
                store=self.store,
                run_id=RUN,
                rules=RULES,
                signer=own,
                checks=checks,  # type: ignore[arg-type]
                facts_of=lambda node_class: facts,
                nodes={
                    name: NodeFacts(name, signer.address, name, "default", 1)
                    for name, signer in NODES.items()
                },
                default_class="default",
                policy=Policy(self.share, self.newcomer_files, 1, self.max_rejected),
                decoy_every=self.decoy_every,
                recomputer=SimpleNamespace(loaded=None, loads=0),  # type: ignore[arg-type]
                reader=Direct(),  # type: ignore[arg-type]
                book=VerdictBook(self.store, RUN, signers),
                pending=Pending(RULES, own.address, signers, 60.0, 0.0, clock=lambda: self.now),
                attempts=Attempts(self.folder / f"attempts-{index}"),
                log=lambda step, values: None,
            )
        )
        made._put_off = PutOff(clock=lambda: self.now)
        return made

    def verdicts(self) -> dict[Key, Verdict]:
        book = VerdictBook(self.store, RUN, [each.address for each in VALIDATORS])
        return {verdict.key: verdict for verdict in book.refresh(STEP)}


def judge_all(*validators: Validator) -> None:
    while sum(each.poll() for each in validators):
        pass
