"""With validators the intake follows verdicts: accepted bytes train, and what waits may be late."""

from __future__ import annotations

import hashlib

from intake_world import GROUPS, META, MIXED, SIZE, World

from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.counter import StepRules
from prime_core.store.records import Dispatch
from prime_core.store.shares import Caps
from prime_core.store.submission import write_submission
from prime_core.store.verdicts import DroppedGroup, Verdict, write_verdict

SIGNER = Signer(bytes(31) + b"\x07")
RULES = StepRules(3, 3, 0, 0)


def world(rules: StepRules = RULES) -> World:
    return World(rules, validator=SIGNER)


def judge(
    run: World,
    dispatch: Dispatch,
    check: str = "",
    *,
    sha256: str = "",
    dropped: tuple[str, ...] = (),
    signer: Signer = SIGNER,
) -> None:
    """Write a verdict on the bytes that a submission has."""
    data = run.outside.get(layout.submission_path(*dispatch.key))
    verdict = Verdict(
        run_id="run-1",
        step=dispatch.step,
        node=dispatch.node,
        n=dispatch.n,
        sha256=sha256 or hashlib.sha256(data).hexdigest(),
        size=len(data),
        groups=2,
        signed=True,
        decision="rejected" if check else "accepted",
        severity="slash" if check else "",
        check=check,
        reason="a forged score" if check else "",
        findings=(),
        dropped=tuple(DroppedGroup(group, "rewards", "a limit") for group in dropped),
        checks=(),
        full=True,
        audit="0x" + "0" * 130,
    )
    write_verdict(run.outside, verdict, signer)


def test_a_file_waits_for_its_verdict_and_trains_after_it() -> None:
    run = world()
    dispatch = run.dispatch(0, 0)
    run.submit(dispatch)
    intake = run.intake()
    assert not intake.poll()
    assert not run.outside.exists(layout.receipt_path(*dispatch.key))
    judge(run, dispatch)
    assert intake.poll()
    assert run.receipt(dispatch).decision == "accepted"
    assert len(run.closed()) == 1


def test_a_strangers_verdict_changes_nothing() -> None:
    run = world()
    dispatch = run.dispatch(0, 0)
    run.submit(dispatch)
    judge(run, dispatch, signer=Signer(bytes(31) + b"\x09"))
    assert not run.intake().poll()


def test_a_rejection_names_its_check_in_receipt_and_outcomes() -> None:
    run = world()
    dispatch = run.dispatch(0, 0)
    run.submit(dispatch)
    judge(run, dispatch, "rewards")
    run.intake().poll()
    receipt = run.receipt(dispatch)
    assert (receipt.decision, receipt.reason) == ("rejected", "rewards: a forged score")
    assert run.counts() == {"rejected(rewards)": GROUPS * SIZE}


def test_bytes_other_than_the_accepted_ones_never_train() -> None:
    run = world()
    dispatch = run.dispatch(0, 0)
    run.submit(dispatch)
    judge(run, dispatch, sha256="cd" * 32)
    run.intake().poll()
    receipt = run.receipt(dispatch)
    assert (receipt.decision, receipt.reason.partition(":")[0]) == ("rejected", "identity")


def test_a_dropped_group_ends_unscored_and_the_others_train() -> None:
    run = world(StepRules(1, 2, 0, 0))
    dispatch = run.dispatch(0, 0)
    run.submit(dispatch)
    judge(run, dispatch, dropped=("0-worker-0-0-1",))
    intake = run.intake()
    intake.poll()
    run.train()
    while intake.poll():
        pass
    assert [group.status for group in run.receipt(dispatch).groups] == [
        "signal",
        "dropped",
        "signal",
    ]
    assert run.counts() == {"trained": 2 * SIZE, "unscored(drop)": SIZE}


def test_a_file_waits_for_its_predecessors_even_when_it_has_its_verdict() -> None:
    run = world()
    first, second = run.dispatch(0, 0), run.dispatch(0, 1)
    run.submit(second)
    judge(run, second)
    intake = run.intake()
    assert not intake.poll()
    run.submit(first)
    judge(run, first, "replay")
    intake.poll()  # a rejected predecessor counts as present
    assert run.receipt(first).decision == "rejected"
    assert run.receipt(second).decision == "accepted"


def test_a_file_whose_step_closed_before_its_verdict_is_late_and_no_rejection() -> None:
    run = world()
    slow, quick = run.dispatch(0, 0, node="slow"), run.dispatch(0, 0, node="quick")
    run.submit(slow)
    run.submit(quick)
    intake = run.intake()
    intake.poll()
    judge(run, quick)
    intake.poll()
    assert len(run.closed()) == 1
    intake.poll()
    assert run.receipt(slow).decision == "late"
    judge(run, slow, "replay")
    intake.poll()
    assert run.receipt(slow).decision == "late"


def test_a_predecessor_that_never_came_makes_late_not_expired() -> None:
    run = world()
    lonely, quick = run.dispatch(0, 1, node="slow"), run.dispatch(0, 0, node="quick")
    for dispatch in (lonely, quick):
        run.submit(dispatch)
        judge(run, dispatch)
    intake = run.intake()
    while intake.poll():
        pass
    assert run.receipt(lonely).decision == "late"
    assert run.counts()["late"] == GROUPS * SIZE


def test_a_restarted_intake_says_the_same() -> None:
    run = world()
    dispatch, other = run.dispatch(0, 0), run.dispatch(0, 1)
    run.submit(dispatch)
    run.submit(other)
    judge(run, dispatch)
    run.intake().poll()
    before = run.closed()
    again = run.intake()
    again.poll()
    assert run.closed() == before
    judge(run, other, "toploc")
    again.poll()
    assert run.receipt(other).decision in ("rejected", "late")


def test_one_node_fills_its_share_of_a_batch_and_no_more() -> None:
    caps = Caps(node=2, provider=2, providers={"a": "home", "b": "home", "c": "away"})
    run = world(StepRules(2, 4, 0, 0, caps))
    for node in ("a", "b", "c"):
        dispatch = run.dispatch(0, 0, node=node)
        run.submit(dispatch, (MIXED,) * GROUPS)
        judge(run, dispatch)
    run.intake().poll()
    (closed,) = run.closed()
    assert closed.count(b'"group_id":"0-a-0-') == 2  # a and b have one owner
    assert closed.count(b'"group_id":"0-b-0-') == 0
    assert closed.count(b'"group_id":"0-c-0-') == 2


def test_an_overwritten_file_costs_its_node_alone() -> None:
    run = world()
    honest, liar = run.dispatch(0, 0, node="honest"), run.dispatch(0, 0, node="liar")
    run.submit(honest)
    rows = run.rows(liar, (MIXED,) * GROUPS)
    run.announce(liar)
    run.put(liar, write_submission(rows, META))
    judge(run, liar, sha256="ee" * 32)  # what lay there when it was judged
    judge(run, honest)
    run.intake().poll()
    assert run.receipt(honest).decision == "accepted"
    assert run.receipt(liar).decision == "rejected"
