"""How much is checked in full, who checks what, and that nobody can know or choose it before."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.api import RunError, StoreError
from prime_core.signing import Signer, recover
from prime_core.store.verdicts import DroppedGroup, Verdict, audit_message
from prime_core.validation import audit_plan as plan
from prime_core.validation.attempts import Attempts
from prime_core.validation.auditing import Owners, Policy, Record, Records, audit
from prime_core.validation.context import uniform

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
