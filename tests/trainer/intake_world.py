"""A run without processes: a store in memory, a worker and a trainer that act when told."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from prime_core.api.types import RewardedGroup
from prime_core.assignment import EnvironmentShare
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.assigner import Assigner
from prime_core.store.checks import Limits
from prime_core.store.counter import StepRules
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog, OutcomeRow
from prime_core.store.records import Closed, Dispatch, Receipt, TaskList
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import write_submission
from prime_core.store.verdicts import VerdictBook
from prime_core.store.view import newest_sealed, read_receipt
from prime_core.trainer.intake import Intake, IntakeTools
from prime_core.trainer.intake_judge import Decode, Judge, OnlineFilter
from prime_core.trainer.intake_verdicts import VerdictGate

GROUPS, SIZE = 3, 4  # of one submission
LOCK = "ab" * 32
META = SubmissionMeta("run-1", LOCK, "engine-1")
_names = itertools.count()
_written: dict[Any, bytes] = {}  # a submission is a function of its dispatch and scores

Scores = Sequence[float | None]  # one a rollout; None is an error
MIXED: Scores = (1.0, 0.0, 0.0, 1.0)
EQUAL: Scores = (1.0, 1.0, 1.0, 1.0)
PARTLY: Scores = (1.0, None, 0.0, None)
BROKEN: Scores = (1.0, None, None, None)

EXACT = StepRules(steps=3, groups_per_step=4, level=1, max_lag=1)
CARRYING = StepRules(steps=3, groups_per_step=4, level=0, max_lag=2)


class Crash(BaseException):
    """The process is killed here."""


class CrashingStore(ObjectStore):
    """Raises `Crash` around a chosen write, counted over the processes' whole life."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.writes = 0
        self.crashes: dict[int, bool] = {}  # write number -> whether it still happens

    def put(self, path: str, data: bytes) -> None:
        number, self.writes = self.writes, self.writes + 1
        if self.crashes.get(number) is False:
            raise Crash(path)
        super().put(path, data)
        if self.crashes.get(number) is True:
            raise Crash(path)


class Constant:
    """An online filter as `nonzero_signal` by total is one."""

    def keep_group(self, group: RewardedGroup) -> Any:
        from prime_core.api.types import Decision

        return Decision(len({reward.total for reward in group.rewards}) > 1, "equal rewards")


def seal_of(version: int) -> bytes:
    return hashlib.sha256(f"seal {version}".encode()).digest()


@dataclass
class World:
    """One run.

    Attributes:
        rules: of the run.
        notified: groups that observers were told of.
        validator: whose verdicts the intake follows; None where it asks for none.
    """

    rules: StepRules
    filters: list[OnlineFilter] = field(
        default_factory=lambda: [OnlineFilter("constant", "dist", Constant())]
    )
    notified: list[str] = field(default_factory=list)
    logged: list[dict[str, Any]] = field(default_factory=list)
    validator: Signer | None = None

    def __post_init__(self) -> None:
        self.outside = CrashingStore(f"memory://intake-{next(_names)}")
        self.inside = CrashingStore(self.outside.url)
        ids = [f"task-{index}" for index in range(50)]
        tasks = TaskList.build("sums", "digest", 100, range(50), ids, (0.0, 1.0))
        more = TaskList.build("words", "digest", 50, range(50), ids, (0.0, 1.0))
        shares = [EnvironmentShare("sums", 1.0, 50), EnvironmentShare("words", 2.0, 50)]
        self.assigner = Assigner("run-1", shares, {"sums": tasks, "words": more})
        self.seal(0)

    # --- the trainer -----------------------------------------------------------------------------

    def seal(self, version: int) -> None:
        self.outside.put(layout.policy_seal_path(version), b"sealed")

    def train(self) -> bool:
        """Seal the next version if its step is closed."""
        newest = newest_sealed(self.outside)
        ready = newest < self.rules.steps and self.outside.exists(layout.closed_path(newest))
        if ready:
            self.seal(newest + 1)
        return ready

    # --- a worker --------------------------------------------------------------------------------

    def dispatch(
        self, step: int, n: int, version: int | None = None, node: str = "worker-0", **changes: Any
    ) -> Dispatch:
        version = self.rules.newest_version(step) if version is None else version
        values: dict[str, Any] = {
            "run_id": "run-1",
            "step": step,
            "node": node,
            "n": n,
            "policy_version": version,
            "policy_digest": seal_of(version).hex(),
            "groups": GROUPS,
            "group_size": SIZE,
            "node_class": "default",
        }
        return Dispatch(**{**values, **changes})

    def announce(self, dispatch: Dispatch) -> None:
        self.outside.put(layout.dispatch_path(*dispatch.key), dispatch.to_json())

    def rows(self, dispatch: Dispatch, groups: Sequence[Scores]) -> list[RolloutRow]:
        made = []
        for (assigned, task_id), scores in zip(self.assigner.groups(dispatch), groups, strict=True):
            for sample, score in enumerate(scores):
                made.append(
                    RolloutRow(
                        environment=assigned.environment,
                        task_id=task_id,
                        group_id=assigned.group_id,
                        sample=sample,
                        step=dispatch.step,
                        policy_version=dispatch.policy_version,
                        node=dispatch.node,
                        submission=dispatch.n,
                        max_tokens=16,
                        prompt_tokens=[1, 2],
                        completion_tokens=[3, 4],
                        completion_mask=[True, True],
                        completion_logprobs=[-1.0, 0.0],
                        finish_reason="stop",
                        length_budget=None,
                        sampling_seed=assigned.seeds[sample],
                        temperature=1.0,
                        score=score,
                        score_status="error" if score is None else "scored",
                        reward=score,
                        reward_parts={} if score is None else {"task": score},
                        proofs=b"",
                        policy_digest=bytes.fromhex(dispatch.policy_digest),
                        turn_ends=[2],
                    )
                )
        return made

    def submit(self, dispatch: Dispatch, groups: Sequence[Scores] = (MIXED,) * GROUPS) -> None:
        """Write the submission; the dispatch first, where it isn't there."""
        if not self.outside.exists(layout.dispatch_path(*dispatch.key)):
            self.announce(dispatch)
        known = (dispatch, tuple(groups))
        if known not in _written:
            _written[known] = write_submission(self.rows(dispatch, groups), META)
        self.put(dispatch, _written[known])

    def put(self, dispatch: Dispatch, data: bytes) -> None:
        self.outside.put(layout.submission_path(*dispatch.key), data)

    # --- the intake ------------------------------------------------------------------------------

    def judge(self, *, decode: Decode | None = None, max_turns: int = 1) -> Judge:
        limits = Limits(
            "run-1",
            LOCK,
            "engine-1",
            1.0,
            {},
            16,
            8,
            max_turns,
            dict.fromkeys(("sums", "words"), (0.0, 1.0)),
            vocabulary=100,
            node_class="default",
        )
        return Judge(
            self.rules,
            limits,
            max_groups=GROUPS,
            group_size=SIZE,
            assigner=self.assigner,
            seal_of=seal_of,
            filters=self.filters,
            decode=decode,
        )

    def intake(self) -> Intake:
        judge = self.judge()

        def log(step: int | None, values: dict[str, Any]) -> None:
            self.logged.append({"step": step, **values})

        def notify(hook: str, arguments: dict[str, Any]) -> None:
            self.notified.append(arguments["group"].id)

        gate = None
        if self.validator is not None:
            addresses = {self.validator.address}
            gate = VerdictGate(VerdictBook(self.inside, "run-1", addresses))
        return Intake(
            IntakeTools(
                self.inside, "run-1", self.rules, judge, self.assigner, log, notify, gate=gate
            )
        )

    def receipt(self, dispatch: Dispatch) -> Receipt:
        return read_receipt(self.outside, dispatch.key)

    def closed(self) -> list[bytes]:
        """The bytes of every closed step."""
        steps = itertools.takewhile(
            lambda step: self.outside.exists(layout.closed_path(step)), itertools.count()
        )
        return [self.outside.get(layout.closed_path(step)) for step in steps]

    def outcomes(self) -> list[OutcomeRow]:
        return sorted(OutcomeLog(self.outside).read(), key=lambda row: row.key)

    def counts(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for row in self.outcomes():
            name = f"{row.outcome}({row.detail})" if row.detail else row.outcome
            found[name] = found.get(name, 0) + 1
        return found


def drive(world: World, turn: Callable[[], bool]) -> Intake:
    """Alternate worker's `turn`, intake and trainer until nothing moves; restarts what crashes."""
    intake: Intake | None = None
    idle = 0
    while idle < 2:
        moved = turn()
        while True:
            try:
                intake = intake or world.intake()
                while intake.poll():
                    moved = True
                break
            except Crash:
                intake, moved = None, True
        moved |= world.train()
        idle = 0 if moved else idle + 1
    return intake


def batches(world: World) -> list[list[str]]:
    """The group ids of each closed step, in training order."""
    return [[group.group_id for group in Closed.from_json(data).groups] for data in world.closed()]
