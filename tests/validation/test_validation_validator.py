"""The validator over a store: copies, junk, outages and discarded files cost whom they should."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from validator_world import (
    AUTHOR,
    EARLY,
    LATE,
    META,
    STEP,
    World,
    judge_all,
    rows_of,
)

from prime_core.api import RunError
from prime_core.store.submission import write_submission


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


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


def test_metrics_say_whose_decoys_were_shown_and_which_found_nothing_but_a_failure(
    world: World,
) -> None:
    world.decoy_every = 1
    logged: list[dict] = []
    validator = world.validator()
    validator._tools = replace(validator._tools, log=lambda step, values: logged.append(values))
    world.submit(AUTHOR, 0)
    judge_all(validator)
    (shown,) = [values for values in logged if "validator/decoys" in values]
    assert shown == {
        "validator/decoys": 1,
        "validator/missed_decoys": 0,
        "validator/failed_decoys": 0,
        "validator/decoys_bad": 1,
    }

    def fragile(submission, context):
        return [] if all((row.reward or 0) <= 1 for row in submission.rows) else 1 // 0

    world.bad.check = fragile  # type: ignore[method-assign]
    world.submit(AUTHOR, 1)
    judge_all(validator)
    assert logged[-1]["validator/failed_decoys"] == 1
