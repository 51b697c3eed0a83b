"""Decoys: spoilt copies count where they would train, and whoever keeps them from it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from judging_support import SEED, Says, opened

from prime_core.api import (
    Finding,
    RolloutView,
    SubmissionView,
)
from prime_core.testing.toy_submission import ToyContext
from prime_core.validation.decoys import show_decoy
from prime_core.validation.judging import NamedCheck


class Finder:
    """Finds rewards above 1, and spoils rows so."""

    stage = "row"

    def __init__(self, limit: float = 1.0) -> None:
        self._limit = limit

    def check(self, submission: SubmissionView, context: object) -> Sequence[Finding]:
        high = [i for i, row in enumerate(submission.rows) if (row.reward or 0) > self._limit]
        return [Finding("reject", "too high", index) for index in high[:1]]

    def decoy(self, submission: SubmissionView, context: ToyContext) -> Sequence[RolloutView]:
        first, *rest = submission.rows
        return [replace(first, reward=7.0), *rest]  # type: ignore[type-var]


def shown(check: Finder | Says, dropped: Collection[str] = ()):
    context, around = opened()
    context.decode()
    return show_decoy([NamedCheck("finder", check)], context, around, SEED, dropped)


def test_a_decoy_that_is_found_and_one_that_is_not() -> None:
    decoy = shown(Finder())
    assert decoy is not None
    assert (decoy.check, decoy.found_by, decoy.missed) == ("finder", "finder", False)
    blind = shown(Finder(limit=100.0))
    assert blind is not None
    assert blind.missed
    assert shown(Says()) is None


def test_a_decoy_is_one_only_where_it_changes_what_would_train() -> None:
    class Nothing(Finder):
        def decoy(self, submission: SubmissionView, context: ToyContext) -> Sequence[RolloutView]:
            return list(submission.rows)

    assert shown(Nothing(limit=100.0)) is None
    first = opened()[0]
    first.decode()
    group = first.view.rows[0].group_id
    assert shown(Finder(limit=100.0), dropped={group}) is None


def test_a_decoy_counts_on_no_group_that_is_dropped() -> None:
    class Seeing(Finder):
        def decoy(self, submission: SubmissionView, context: ToyContext) -> Sequence[RolloutView]:
            self.seen = [row.reward for row in submission.rows]
            return [replace(row, reward=7.0) for row in submission.rows]  # type: ignore[type-var]

        def check(self, submission: SubmissionView, context: object) -> Sequence[Finding]:
            self.rewards = [row.reward for row in submission.rows]
            return super().check(submission, context)

    check, first = Seeing(), opened()[0]
    first.decode()
    honest = [row.reward for row in first.view.rows]
    decoy = shown(check, dropped={first.view.rows[0].group_id})
    assert decoy is not None
    assert not decoy.missed
    assert check.seen == [None] * 4 + honest[4:]
    assert check.rewards == honest[:4] + [7.0] * (len(honest) - 4)


def test_a_decoy_whose_groups_are_dropped_trains_nobody() -> None:
    class Dropping(Finder):
        def check(self, submission: SubmissionView, context: object) -> Sequence[Finding]:
            return [replace(each, severity="drop") for each in super().check(submission, context)]

    decoy = shown(Dropping())
    assert decoy is not None
    assert (decoy.found_by, decoy.missed) == ("finder", False)


def test_a_decoy_that_the_format_refuses_counts_as_found() -> None:
    class Broken(Finder):
        def decoy(self, submission: SubmissionView, context: ToyContext) -> Sequence[RolloutView]:
            return list(submission.rows)[:-1]

    decoy = shown(Broken())
    assert decoy is not None
    assert (decoy.found_by, decoy.missed) == ("schema", False)
