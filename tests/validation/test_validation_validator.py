"""The validator over a store: copies, junk, outages and discarded files cost whom they should."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from prime_sanity_checks.identity import Identity
from prime_sanity_checks.schema import Schema, SchemaParams

from prime_core.api import Finding, NodeFacts, RunError, StoreError, SubmissionView
from prime_core.signing import Signer, signed_bytes
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Dispatch, Key
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import read_submission, write_submission
from prime_core.store.verdicts import Verdict, VerdictBook
from prime_core.testing.toy_submission import SEAL, toy_submission
from prime_core.validation.attempts import MOST, Attempts
from prime_core.validation.auditing import Policy
from prime_core.validation.judging import NamedCheck
from prime_core.validation.pending import Pending
from prime_core.validation.put_off import FIRST_S, LONGEST_S, PutOff
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
        **changes,
    ) -> bytes:
        """Announce and submit a file; `signer` None for no statement, "" for the node itself."""
        if data is None:
            rows = [replace(row, **changes) for row in rows_of(node, n, groups)]
            data = write_submission(rows, META)
        dispatch = Dispatch(RUN, STEP, node, n, VERSION, SEAL.hex(), groups, 4, "default")
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


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def judge_all(*validators: Validator) -> None:
    while sum(each.poll() for each in validators):
        pass


# --- copies -----------------------------------------------------------------------------------


@pytest.mark.parametrize("thief", [EARLY, LATE])
@pytest.mark.parametrize("ahead", [True, False])
def test_a_copy_is_refused_and_costs_its_author_nothing(
    world: World, thief: str, ahead: bool
) -> None:
    """Whoever is judged first, the author or the thief, and across a restart."""
    world.submit(AUTHOR, 0)
    stolen = write_submission(rows_of(AUTHOR, 1), META)
    if ahead:
        world.submit(AUTHOR, 1, stolen)
        judge_all(world.validator())
        world.submit(thief, 0, stolen)
    else:
        world.submit(thief, 0, stolen)
        judge_all(world.validator())
        world.submit(AUTHOR, 1, stolen)
    last = world.validator()
    judge_all(last)
    found = world.verdicts()
    assert found[STEP, thief, 0].decision == "rejected"
    assert [found[STEP, AUTHOR, n].decision for n in (0, 1)] == ["accepted"] * 2
    assert (last._node(AUTHOR).clean, last._node(AUTHOR).rejected) == (2, 0)
    assert last._node(thief).rejected == 1


def test_several_validators_agree_about_copies(world: World) -> None:
    for n in range(3):
        stolen = world.submit(AUTHOR, n)
        world.submit(EARLY, n, stolen)
    world.max_rejected = 9
    pair = world.validator(0, of=2), world.validator(1, of=2)
    judge_all(*pair)
    assert {(node, v.decision) for (_, node, _), v in world.verdicts().items()} == {
        (AUTHOR, "accepted"),
        (EARLY, "rejected"),
    }


def test_one_file_under_two_numbers_of_one_node_is_taken_once(world: World) -> None:
    data = world.submit(AUTHOR, 0)
    world.submit(AUTHOR, 1, data)
    judge_all(world.validator())
    found = world.verdicts()
    assert [found[STEP, AUTHOR, n].decision for n in (0, 1)] == ["accepted", "rejected"]
    assert found[STEP, AUTHOR, 1].check == "identity"


# --- the record -------------------------------------------------------------------------------


def test_what_a_node_did_not_sign_changes_nothing_of_its_record(world: World) -> None:
    world.submit(AUTHOR, 0)
    world.submit(AUTHOR, 1, b"junk", signer=None)
    judge_all(world.validator())
    assert world.verdicts()[STEP, AUTHOR, 1].decision == "rejected"
    assert not world.verdicts()[STEP, AUTHOR, 1].signed
    node = world.validator()._node(AUTHOR)
    assert (node.accepted, node.rejected, node.clean) == (1, 0, 1)
    world.submit(LATE, 0)
    world.submit(LATE, 1, b"junk", signer=LATE)
    world.submit(EARLY, 0)
    world.submit(EARLY, 1, b"junk", signer=LATE)
    judge_all(world.validator())
    assert world.validator()._node(LATE).rejected == 1
    assert world.validator()._node(EARLY).rejected == 0


def test_a_node_cannot_leave_out_the_files_that_it_dislikes(world: World) -> None:
    world.share, world.newcomer_files = 1e-9, 0
    world.submit(AUTHOR, 0)
    world.submit(AUTHOR, 1, b"junk", signer=None)
    world.submit(AUTHOR, 2)
    world.submit(AUTHOR, 3, reward=2.0)
    world.submit(AUTHOR, 4)
    judge_all(world.validator())
    found = world.verdicts()
    assert [found[STEP, AUTHOR, n].decision for n in range(3)] == [
        "accepted",
        "rejected",
        "accepted",
    ]
    assert world.bad.full[AUTHOR, 2]  # looked at in full, since one before it was refused
    assert found[STEP, AUTHOR, 3].severity == "slash"
    last = found[STEP, AUTHOR, 4]
    assert (last.decision, last.severity, last.check) == ("rejected", "drop", "validator")
    assert "2 of the node's files" in last.reason


# --- outages ----------------------------------------------------------------------------------


def test_a_store_that_is_away_rejects_nobody_and_holds_nobody_up(world: World) -> None:
    world.submit(EARLY, 0)
    world.submit(AUTHOR, 0)
    away = layout.submission_signature_path(STEP, EARLY, 0)
    world.store.missing[away] = MOST + 3
    validator = world.validator()
    assert validator.poll()  # it is put off
    assert validator.poll()  # and the other one judged
    assert set(world.verdicts()) == {(STEP, AUTHOR, 0)}
    assert not validator.poll()
    for _ in range(MOST + 3):
        world.now += LONGEST_S
        judge_all(validator)
    assert world.verdicts()[STEP, EARLY, 0].decision == "accepted"
    assert not list(world.folder.glob("attempts-0/*"))


def test_pauses_grow_to_a_limit(world: World) -> None:
    now = [0.0]
    put_off, key = PutOff(clock=lambda: now[0]), (STEP, AUTHOR, 0)
    assert put_off.put(key) == FIRST_S
    assert put_off.first([key]) is None
    now[0] = FIRST_S
    assert put_off.first([key]) == key
    pauses = [put_off.put(key) for _ in range(99)]
    assert pauses == sorted(pauses)
    assert pauses[-1] == LONGEST_S
    put_off.end(key)
    assert put_off.first([key]) == key


def test_junk_in_a_verdicts_place_holds_up_its_file_alone(world: World) -> None:
    data = world.submit(EARLY, 0)
    world.submit(AUTHOR, 0)
    sha256 = hashlib.sha256(data).hexdigest()
    world.store.put(layout.verdict_path(STEP, EARLY, 0, sha256), b"junk")
    judge_all(world.validator())
    assert set(world.verdicts()) == {(STEP, AUTHOR, 0)}


# --- decoys -----------------------------------------------------------------------------------


def test_no_content_of_a_file_makes_the_validator_seem_blind(world: World) -> None:
    world.decoy_every = 1
    nothing = {"score_status": "error", "score": None, "reward": None, "reward_parts": {}}
    world.submit(AUTHOR, 0, **nothing)
    world.submit(LATE, 0)
    judge_all(world.validator())
    assert {v.decision for v in world.verdicts().values()} == {"accepted"}


def test_a_check_that_lets_a_real_decoy_pass_ends_the_validator(world: World) -> None:
    world.decoy_every = 1
    world.bad.decoy = lambda submission, context: [  # type: ignore[method-assign]
        replace(row, reward=0.5) for row in submission.rows
    ]
    world.submit(AUTHOR, 0)
    with pytest.raises(RunError, match="decoy"):
        judge_all(world.validator())
    assert world.verdicts()[STEP, AUTHOR, 0].decision == "accepted"


def test_a_check_that_fails_to_make_a_decoy_is_no_failure(world: World) -> None:
    def broken(submission, context):
        raise IndexError("no second row")

    world.decoy_every = 1
    world.bad.decoy = broken  # type: ignore[method-assign]
    world.submit(AUTHOR, 0)
    judge_all(world.validator())
    assert world.verdicts()[STEP, AUTHOR, 0].decision == "accepted"
