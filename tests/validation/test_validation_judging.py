"""From findings to a verdict: first rejection ends it, drops are groups, failures accuse nobody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from judging_support import AUDIT, SEED, Says, opened

from prime_core.api import (
    Finding,
    FormatError,
    IntegrityError,
    Statement,
    StoreError,
)
from prime_core.validation.context import FileContext
from prime_core.validation.judging import NamedCheck, ask, verdict_of
from prime_core.validation.recompute import of_store


def verdict(*checks: Says, trusted: bool = True, context: FileContext | None = None):
    context = context or opened()[0]
    named = [NamedCheck(f"check{index}", check) for index, check in enumerate(checks)]
    return verdict_of(ask(named, context), context, AUDIT, trusted=trusted)


def test_nothing_found_accepts() -> None:
    found = verdict(Says(), Says(Finding("warn", "odd")))
    assert (found.decision, found.severity, found.check, found.dropped) == ("accepted", "", "", ())
    assert [each.severity for each in found.findings] == ["warn"]
    assert [run.check for run in found.checks] == ["check0", "check1"]


def test_the_first_rejection_ends_it_and_names_row_and_chunk() -> None:
    last = Says()
    found = verdict(Says(), Says(Finding("reject", "bad", 3, 1)), last)
    assert (found.decision, found.severity, found.check) == ("rejected", "reject", "check1")
    assert found.reason == "row 3: chunk 1: bad"
    assert last.asked == 0


def test_the_gravest_finding_of_a_check_decides() -> None:
    found = verdict(Says(Finding("reject", "mild"), Finding("slash", "grave", 1)))
    assert (found.severity, found.reason) == ("slash", "row 1: grave")


def test_nobody_is_slashed_for_a_file_that_is_not_surely_his() -> None:
    assert verdict(Says(Finding("slash", "grave")), trusted=False).severity == "reject"


def test_drops_name_groups_of_an_accepted_file_and_vanish_from_a_rejected_one() -> None:
    drops = Says(
        Finding("drop", "a limit", 0), Finding("drop", "a limit", 5), Finding("drop", "x", 6)
    )
    found = verdict(drops)
    assert [group.id for group in found.dropped] == ["3-node-0-0", "3-node-0-1"]
    assert verdict(drops, Says(Finding("reject", "bad"))).dropped == ()


def test_a_verdict_is_blameless_where_everything_that_decided_is() -> None:
    drop, unsigned = Finding("drop", "x", 0), Finding("reject", "x")
    fate = replace(drop, blameless=True)
    assert verdict(Says(fate, Finding("warn", "y"))).blameless
    assert not verdict(Says(fate, drop)).blameless
    assert verdict(Says(drop), Says(replace(unsigned, blameless=True))).blameless
    assert not verdict(Says(replace(unsigned, blameless=True), unsigned)).blameless
    assert not verdict(Says()).blameless


@pytest.mark.parametrize(
    "error",
    [
        ValueError("boom"),
        KeyError("x"),
        RecursionError(),
        TimeoutError("gave up"),
        FileNotFoundError(2, "no table"),
        ConnectionResetError(104, "reset"),
    ],
)
def test_a_check_that_raises_costs_the_file_its_turn_and_accuses_nobody(error: Exception) -> None:
    found = verdict(Says(), Says(error=error), Says(Finding("slash", "grave")))
    assert (found.decision, found.severity, found.check) == ("rejected", "drop", "validator")
    assert "check1" in found.reason


@pytest.mark.parametrize(
    "error", [StoreError("disk gone"), OSError(28, "disk full"), OSError(24, "too many open files")]
)
def test_a_store_that_is_away_is_not_the_files_fault(error: Exception) -> None:
    with pytest.raises(StoreError):
        verdict(Says(error=error))


@pytest.mark.parametrize("error", [FormatError("damaged"), IntegrityError("another hash")])
def test_a_damaged_policy_is_not_the_files_fault(error: Exception) -> None:
    def read(version: int) -> bytes:
        raise error

    with pytest.raises(StoreError, match=str(error)):
        of_store(read)(3)
    assert of_store(bytes)(2) == bytes(2)
    assert verdict(Says(error=error)).severity == "drop"


def test_a_file_that_cannot_be_decoded_is_rejected_without_a_check_schema() -> None:
    context, _ = opened(data=b"PAR1 no")
    found = verdict(Says(stage="file"), Says(), context=context)
    assert (found.decision, found.check) == ("rejected", "check1")


def test_reasons_are_one_printable_line() -> None:
    found = verdict(Says(Finding("reject", "a\nb\x1b[31m\u202ec" + "x" * 9999)))
    assert found.reason.isascii()
    assert found.reason.isprintable()
    assert len(found.reason) <= 500


@pytest.mark.parametrize(("spot", "expected"), [(0, 0), (1, 1), (2, 2), (9, 4)])
def test_a_spot_check_looks_at_whole_groups_that_the_seed_draws(spot: int, expected: int) -> None:
    context, _ = opened(full=False, spot_groups=spot)
    context.decode()
    groups = {context.view.rows[index].group_id for index in context.rows}
    assert len(groups) == expected
    assert len(context.rows) == 4 * expected
    again, _ = opened(full=False, spot_groups=spot)
    again.decode()
    assert again.rows == context.rows


def test_each_check_has_draws_of_its_own_that_repeat() -> None:
    context, _ = opened()
    words = []
    for name in ("a", "b", "a"):
        context.asked(name)
        words.append(context.rng.word())
    assert words[0] == words[2] != words[1]


@pytest.mark.parametrize("place", [(99, None), (-1, None), (0, -1)])
def test_a_check_that_names_no_place_costs_the_file_its_turn(place) -> None:
    found = verdict(Says(Finding("drop", "x", *place)))
    assert (found.severity, found.check) == ("drop", "validator")


def test_a_file_whose_rows_name_another_submission_is_nobodys() -> None:
    context, around = opened()
    context = FileContext(
        around, replace(context.view, n=7), context._data, seed=SEED, full=True, spot_groups=1
    )
    found = verdict(Says(), context=context)
    assert (found.decision, found.check) == ("rejected", "check0")
    assert "name submission 3-node-00000" in found.reason


def test_a_verdict_says_whether_the_node_signed_these_bytes() -> None:
    context, around = opened()
    view = context.view
    said = Statement("toy-run", 3, "node", 0, view.sha256, view.size, around.node.address or "")

    def signed(statement: Callable[[], Statement | None]) -> bool:
        own = replace(around, statement=statement)
        made = FileContext(own, view, context._data, seed=SEED, full=True, spot_groups=1)
        return verdict(Says(), context=made).signed

    def broken() -> None:
        raise IntegrityError("a wrong signature")

    assert signed(lambda: said)
    assert not signed(lambda: None)
    assert not signed(lambda: replace(said, signer="0x" + "cd" * 20))
    assert not signed(lambda: replace(said, n=1))
    assert not signed(lambda: replace(said, sha256="0" * 64))
    assert not signed(broken)


def test_errors_of_the_reader_are_format_errors_alone() -> None:
    context, _ = opened(data=b"x")
    read: Callable[[], None] = context.decode
    with pytest.raises(FormatError):
        read()
