"""How much is checked in full, who checks what, and that nobody can know or choose it before."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.api import RunError, StoreError
from prime_core.signing import Signer, recover
from prime_core.store.counter import RunView, StepRules
from prime_core.store.records import Dispatch
from prime_core.store.verdicts import DroppedGroup, Verdict, audit_message
from prime_core.validation import audit_plan as plan
from prime_core.validation.attempts import Attempts
from prime_core.validation.auditing import Owners, Policy, Record, Records, audit
from prime_core.validation.context import uniform
from prime_core.validation.pending import Pending, rank

SIGNER = Signer(bytes(31) + b"\x01")
KEY = (3, "node-a", 0)


def verdict(
    n: int, decision: str = "accepted", severity: str = "", node: str = "node-a"
) -> Verdict:
    return Verdict(
        run_id="r",
        step=3,
        node="node-a",
        n=n,
        sha256=f"{n:064x}",
        size=10,
        groups=1,
        signed=True,
        decision=decision,
        severity=severity,
        check="replay" if severity else "",
        reason="",
        findings=(),
        dropped=(),
        checks=(),
        full=True,
        audit="0x" + "0" * 130,
    )


def test_newcomers_are_checked_in_full_and_the_share_falls_to_the_config_s() -> None:
    policy = Policy(share=0.1, newcomer_files=16, spot_groups=1)
    assert [policy.share_for(n) for n in (0, 16)] == [1.0, 1.0]
    shares = [policy.share_for(n) for n in range(400)]
    assert shares == sorted(shares, reverse=True)
    assert policy.share_for(32) == 0.5
    assert shares[-1] == 0.1
    assert Policy(1.0, 0, 1).share_for(10**6) == 1.0


def test_a_rejection_starts_the_record_anew_and_an_unjudged_file_changes_nothing() -> None:
    records = Records([verdict(0), verdict(1)])
    assert records.of("node-a") == Record(2, 0, 2)
    records.add(verdict(2, "rejected", "drop"))
    assert records.of("node-a") == Record(2, 0, 2)
    records.add(verdict(3, "rejected", "reject"))
    assert records.of("node-a") == Record(2, 1, 0)
    assert records.of("node-b") == Record()


def test_what_is_nobodys_doing_counts_as_if_it_was_not() -> None:
    dropped = (DroppedGroup("2-node-a-0-0", "rewards", "no signal"),)
    verdicts = [replace(verdict(0), dropped=dropped, blameless=True), verdict(1)]
    verdicts.append(replace(verdict(2, "rejected", "reject"), blameless=True))
    records = Records(verdicts)
    assert records.of("node-a") == Record(2, 0, 2)
    assert records.refused((3, "node-a", 3)) == 1


def test_files_with_dropped_groups_earn_no_record() -> None:
    dropped = replace(verdict(2), dropped=(DroppedGroup("2-node-a-2-0", "rewards", "an error"),))
    records = Records([verdict(0), verdict(1)])
    before = records.of("node-a")
    records.add(dropped)
    assert records.of("node-a") == before


def test_only_what_a_node_signed_counts() -> None:
    records = Records([verdict(0), replace(verdict(1), signed=False)])
    assert records.of("node-a") == Record(1, 0, 1)
    records.add(replace(verdict(2, "rejected", "reject"), signed=False))
    assert records.of("node-a") == Record(1, 0, 1)


def test_a_record_is_earned_by_groups() -> None:
    small = [replace(verdict(n), groups=1) for n in range(16)]
    assert Records(small, full_groups=16).of("node-a") == Record(16, 0, 1)
    whole = [replace(verdict(n), groups=16) for n in range(3)]
    assert Records(whole, full_groups=16).of("node-a") == Record(3, 0, 3)
    assert Records([replace(verdict(0), groups=999)], full_groups=16).of("node-a").clean == 1


def test_rejected_files_of_a_step_are_counted_for_those_after_them() -> None:
    records = Records(
        [
            replace(verdict(0, "rejected", "reject"), signed=False),
            verdict(1),
            verdict(2, "rejected", "slash"),
            verdict(3, "rejected", "drop"),
        ]
    )
    assert [records.refused((3, "node-a", n)) for n in range(5)] == [0, 1, 1, 2, 2]
    assert records.refused((4, "node-a", 9)) == records.refused((3, "node-b", 9)) == 0


def test_bytes_belong_to_the_accepted_submission_in_whatever_order_verdicts_come() -> None:
    mine, stolen = verdict(5), replace(verdict(0, "rejected", "reject"), sha256=f"{5:064x}")
    for found in ([mine, stolen], [stolen, mine]):
        owners = Owners()
        for each in found:
            owners.add(each)
        assert owners.other(mine.sha256, stolen.key) == "3-node-a-00005"
        assert owners.other(mine.sha256, mine.key) is None
        assert owners.other("0" * 64, mine.key) is None


def test_records_depend_on_the_verdicts_and_not_on_their_order() -> None:
    found = [verdict(0), verdict(1, "rejected", "slash"), verdict(2)]
    assert Records(found).of("node-a") == Records(found[::-1]).of("node-a") == Record(2, 1, 1)
    growing = Records()
    for one in found[::-1]:
        growing.of("node-a")
        growing.add(one)
    assert growing.of("node-a") == Record(2, 1, 1)


def test_the_draw_is_the_validators_signature_which_anybody_may_verify() -> None:
    signature, seed = audit(SIGNER, "r", KEY, "ab" * 32)
    assert recover(audit_message("r", KEY, "ab" * 32), signature) == SIGNER.address
    assert audit(SIGNER, "r", KEY, "ab" * 32) == (signature, seed)
    other = [audit(SIGNER, "r", KEY, "ac" * 32)[1], audit(SIGNER, "s", KEY, "ab" * 32)[1]]
    assert seed not in other
    assert 0 <= uniform(seed, "full") < 1
    assert uniform(seed, "full") != uniform(seed, "decoy")


def test_draws_are_uniform_over_files() -> None:
    draws = [uniform(audit(SIGNER, "r", KEY, f"{i:064x}")[1], "full") for i in range(400)]
    assert abs(sum(draws) / 400 - 0.5) < 5 * math.sqrt(1 / 12 / 400)


@given(st.sets(st.integers(0, 99), min_size=1, max_size=6), st.integers(0, 50))
def test_every_file_has_one_first_validator(numbers: set[int], n: int) -> None:
    validators = {f"0x{number:040x}" for number in numbers}
    ranks = sorted(rank(each, validators, (1, "node", n)) for each in validators)
    assert ranks == list(range(len(validators)))


RULES = StepRules(steps=10, groups_per_step=4, level=2, max_lag=2)


def view_with(*files: tuple[int, str, int], version: int = 0) -> RunView:
    view = RunView(newest_version=3)
    for key in files:
        step, node, n = key
        view.dispatches[key] = Dispatch("r", step, node, n, version, "ab" * 32, 2, 2, "default")
        view.submissions.add(key)
    return view


def pending(clock: list[float], validators: set[str] | None = None) -> Pending:
    own = SIGNER.address
    return Pending(RULES, own, validators or {own}, 60.0, 30.0, clock=lambda: clock[0])


def files(queue: Pending, view: RunView, stated=lambda key: True, loaded=None):
    return queue.files(view, judged=lambda key: False, stated=stated, loaded=loaded)


def test_oldest_steps_first_nodes_in_turn_and_the_loaded_version_before_others() -> None:
    view = view_with((2, "a", 0), (2, "a", 1), (2, "b", 0), (1, "b", 0))
    assert files(pending([0.0]), view) == [(1, "b", 0), (2, "a", 0), (2, "b", 0)]
    view.receipts[2, "a", 0] = None
    assert files(pending([0.0]), view) == [(1, "b", 0), (2, "b", 0), (2, "a", 1)]
    key = (2, "c", 0)
    view.dispatches[key] = Dispatch("r", *key, 1, "ab" * 32, 2, 2, "default")
    view.submissions.add(key)
    assert files(pending([0.0]), view, loaded=1)[1] == key


def test_a_file_waits_for_its_predecessors_and_its_statement() -> None:
    view, clock = view_with((1, "a", 1)), [0.0]
    queue = pending(clock)
    assert files(queue, view) == []
    view = view_with((1, "a", 0), (1, "a", 1))
    assert files(queue, view, stated=lambda key: key[2] == 1) == []
    clock[0] = 31.0
    assert files(queue, view, stated=lambda key: False) == [(1, "a", 0)]
    view.receipts[1, "a", 0] = None
    assert files(queue, view, stated=lambda key: False) == [(1, "a", 1)]


def test_a_nodes_files_of_a_step_are_judged_in_their_order() -> None:
    """Whatever version is loaded: what becomes of one decides how those after it are looked at."""
    view, queue, done, stuck = view_with((2, "a", 1), (2, "b", 0)), pending([0.0]), set(), set()
    first, second = (2, "a", 0), (2, "a", 1)
    view.dispatches[first] = Dispatch("r", *first, 1, "ab" * 32, 2, 2, "default")

    def ready():
        found = queue.files(view, done.__contains__, lambda key: True, 0, stuck.__contains__)
        return [key for key in found if key[1] == "a"]

    assert ready() == []  # it hasn't come
    view.submissions.add(first)
    assert ready() == [first]
    done.add(first)
    assert ready() == [second]
    done.clear()
    stuck.add(first)  # put off for long: it comes again, and nobody waits for it
    assert ready() == [second, first]
    stuck.clear()
    del view.dispatches[first]
    assert ready() == []  # somebody may yet announce it, until the intake refuses it
    view.receipts[first] = None
    assert ready() == [second]


def test_a_predecessor_that_is_late_holds_nobody_up() -> None:
    view = view_with((2, "a", 1), version=1)
    late = (2, "a", 0)
    view.submissions.add(late)
    view.dispatches[late] = Dispatch("r", *late, 0, "ab" * 32, 2, 2, "default")
    queue = pending([0.0])
    queue.rules = replace(RULES, level=1, max_lag=3)
    assert files(queue, view) == [late]
    view.first_open = 4  # which version 0 may not serve any more, and version 1 may
    assert files(queue, view) == [(2, "a", 1)]


def test_a_late_file_gets_no_verdict() -> None:
    view = view_with((1, "a", 0))
    view.first_open = 3
    assert files(pending([0.0]), view) == []


def test_another_validator_takes_over_after_its_wait() -> None:
    other = "0x" + "22" * 20
    validators = {SIGNER.address, other}
    view = view_with(*((1, f"a{n}", 0) for n in range(8)))
    clock = [0.0]
    queue = pending(clock, validators)
    mine = files(queue, view)
    assert mine == [
        key for key in sorted(view.submissions) if rank(SIGNER.address, validators, key) == 0
    ]
    assert 0 < len(mine) < 8
    clock[0] = 60.0
    assert len(files(queue, view)) == 8


def test_attempts_survive_their_judge(tmp_path) -> None:
    assert [Attempts(tmp_path / "a").begin(KEY) for _ in range(3)] == [0, 1, 2]
    Attempts(tmp_path / "a").withdraw(KEY, 2)
    assert Attempts(tmp_path / "a").begin(KEY) == 2
    Attempts(tmp_path / "a").end(KEY)
    Attempts(tmp_path / "a").end(KEY)
    Attempts(tmp_path / "a").withdraw(KEY, 0)
    assert not list((tmp_path / "a").iterdir())
    assert Attempts(tmp_path / "a").begin(KEY) == 0


def test_a_disk_that_takes_no_note_is_a_store_error(tmp_path, monkeypatch) -> None:
    attempts = Attempts(tmp_path / "a")

    def full(*_, **__):
        raise OSError(30, "Read-only file system")

    for name in ("write_text", "unlink", "read_text"):
        with monkeypatch.context() as patch:
            patch.setattr(type(tmp_path), name, full)
            with pytest.raises(StoreError, match="can't be noted"):
                attempts.end(KEY) if name == "unlink" else attempts.begin(KEY)


@given(
    st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0.01, 1e5), st.floats(0.05, 1), st.floats(0, 1)
)
def test_cheating_gains_nothing_from_the_planned_share_on(stake, locked, gain, power, more) -> None:
    stakes = plan.Stakes(stake, locked, gain, power)
    share = plan.least_share(stakes)
    if share is None:
        assert plan.expected_gain(stakes, 1.0) > 0
        return
    tiny = 1e-6 * (gain + stake + locked)
    assert abs(plan.expected_gain(stakes, share)) <= tiny
    assert plan.expected_gain(stakes, min(1.0, share + more)) <= tiny


def test_spot_checks_and_patience() -> None:
    stakes = plan.Stakes(1000, 0, 5, 0.99)
    assert plan.files_until_found(stakes, 0.5) == 7
    assert plan.undetected(stakes, 0.1, 10) == pytest.approx(0.901**10)
    assert plan.spot_power(16, 1, 16, 1.0) == pytest.approx(1.0)
    assert plan.spot_power(16, 1, 1, 1.0) == pytest.approx(1 / 16)
    assert plan.spot_power(4, 4, 1, 1.0) == pytest.approx(1.0)
    with pytest.raises(RunError, match="power"):
        plan.Stakes(1, 0, 1, 0.0)
