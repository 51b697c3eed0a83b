"""What fails here puts a file off, for a while, and holds up and accuses nobody."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from validator_world import (
    AUTHOR,
    EARLY,
    STEP,
    VALIDATORS,
    Bad,
    World,
    judge_all,
)

from prime_core.api import RunError, StoreError, SubmissionView
from prime_core.signing import signed_bytes
from prime_core.store import layout
from prime_core.validation.attempts import MOST, Attempts
from prime_core.validation.put_off import FIRST_S, LONGEST_S, PutOff
from prime_core.validation.put_off import MOST as MOST_PUT_OFF


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


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


class Broken(Bad):
    """A check that fails, for as long as it is told, for reasons of ours, with one node's files."""

    def __init__(self, error: Exception, node: str = AUTHOR) -> None:
        super().__init__()
        self.error, self.node, self.asked = error, node, 0

    def check(self, submission: SubmissionView, context):
        if submission.node == self.node:
            self.asked += 1
            raise self.error
        return super().check(submission, context)


def test_a_file_that_alone_fails_is_put_off_for_half_an_hour_and_accuses_nobody(
    world: World,
) -> None:
    world.bad = Broken(StoreError("damaged"))
    world.submit(AUTHOR, 0)
    world.submit(AUTHOR, 1)
    validator = world.validator()
    for _ in range(2 * MOST_PUT_OFF):  # an outage, as far as anybody can tell
        world.now += LONGEST_S
        judge_all(validator)
    assert world.verdicts() == {}
    for n in range(2):
        world.submit(EARLY, n)
        for _ in range(3):
            world.now += LONGEST_S
            judge_all(validator)
    found = world.verdicts()
    for n in range(2):
        assert (found[STEP, AUTHOR, n].severity, found[STEP, AUTHOR, n].check) == (
            "drop",
            "validator",
        )
        assert found[STEP, EARLY, n].decision == "accepted"
    assert "was put off" in found[STEP, AUTHOR, 0].reason
    assert validator._node(AUTHOR).rejected == 0
    assert validator._records.refused((STEP, AUTHOR, 9)) == 0


def test_one_bad_file_holds_its_only_node_up_for_half_an_hour_at_most(world: World) -> None:
    class First(Broken):
        def check(self, submission: SubmissionView, context):
            self.node = AUTHOR if submission.n == 0 else ""
            return super().check(submission, context)

    world.bad = First(StoreError("damaged"))
    world.submit(AUTHOR, 0)
    world.submit(AUTHOR, 1)
    validator = world.validator()
    for times in range(MOST_PUT_OFF + 2):
        assert bool(world.verdicts()) == (times >= MOST_PUT_OFF)
        world.now += LONGEST_S
        judge_all(validator)
    found = world.verdicts()
    assert found[STEP, AUTHOR, 0].severity == "drop"
    assert found[STEP, AUTHOR, 1].decision == "accepted"


def test_a_full_disk_ends_no_validator(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.submit(AUTHOR, 0)
    validator = world.validator()

    def full(*_):
        raise StoreError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Attempts, "begin", full)
        assert validator.poll()
    world.bad = Broken(StoreError("away"))
    broken = world.validator()
    with monkeypatch.context() as patch:
        patch.setattr(Attempts, "withdraw", full)
        assert broken.poll()
    world.now += LONGEST_S
    judge_all(validator)
    assert world.verdicts()[STEP, AUTHOR, 0].decision == "accepted"


def test_a_node_cannot_have_its_good_files_judged_before_its_junk(world: World) -> None:
    """By announcing the junk for a version that costs a loading."""
    world.store.put(layout.policy_seal_path(2), b"{}")
    for n in range(8):
        world.submit(AUTHOR, n, b"junk" if n < 4 else None, version=2 if n < 4 else 1)
    validator = world.validator()
    validator._tools.recomputer.loaded = 1
    judge_all(validator)
    assert {v.decision for v in world.verdicts().values()} == {"rejected"}


@pytest.mark.parametrize("junk", [b"junk", b'{"format":"prime-core/verdict/1"}'])
def test_junk_in_a_verdicts_place_holds_up_its_file_alone(
    world: World, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    data = world.submit(EARLY, 0)
    world.submit(EARLY, 1)
    world.submit(AUTHOR, 0)
    sha256 = hashlib.sha256(data).hexdigest()
    world.store.put(layout.verdict_path(STEP, EARLY, 0, sha256), junk)
    validator = world.validator()
    for _ in range(9):
        world.now += LONGEST_S
        judge_all(validator)
    assert set(world.verdicts()) == {(STEP, AUTHOR, 0), (STEP, EARLY, 1)}
    assert (EARLY, 0) not in world.bad.full  # nobody judged it in vain
    assert caplog.text.count("its file gets none") == 1
    validator._tools.book.check_formats()


def test_a_run_with_verdicts_of_another_format_is_refused(world: World) -> None:
    data = world.submit(AUTHOR, 0)
    path = layout.verdict_path(STEP, AUTHOR, 0, hashlib.sha256(data).hexdigest())
    world.store.put(path, signed_bytes(VALIDATORS[0], {"format": "prime-core/verdict/1"}))
    with pytest.raises(RunError, match=r"verdict/1; this version.s is .*\n.* new run"):
        world.validator()._tools.book.check_formats()
