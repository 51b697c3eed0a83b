"""What every sanity check keeps: honest files pass, its own dishonest ones don't, and it repeats.

Authors inherit `SanityCheckContract` and override `make_sanity_check` and `dishonest`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from prime_core.api import (
    SEVERITIES,
    STAGES,
    CheckContext,
    Finding,
    FormatError,
    SanityCheck,
    SubmissionView,
)
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.plain import override
from prime_core.testing.toy_submission import toy_submission

Case = tuple[SubmissionView, CheckContext]

HONEST_FILES = 5
MAX_REASON = 300


class SanityCheckContract:
    """Inherit, and override `make_sanity_check` and `dishonest`."""

    @pytest.fixture
    def make_sanity_check(self) -> Callable[[], SanityCheck]:
        """A function that makes the check anew."""
        made: Callable[[], SanityCheck] = override("make_sanity_check", "makes the check")
        return made

    @pytest.fixture
    def dishonest(self) -> Sequence[Case]:
        """Submissions, each with its context, in which the check must find something."""
        cases: Sequence[Case] = override("dishonest", "gives what the check must find")
        return cases

    @pytest.fixture
    def honest(self) -> Sequence[Case]:
        """Submissions, each with its context, that a check may hold nothing against."""
        return [toy_submission(groups=2 + seed, seed=seed) for seed in range(HONEST_FILES)]

    @pytest.fixture
    def sanity_check(self, make_sanity_check: Callable[[], SanityCheck]) -> SanityCheck:
        """The check under test."""
        return make_sanity_check()

    def test_has_every_member(self, sanity_check: SanityCheck) -> None:
        assert missing_members(sanity_check, [SanityCheck]) == []
        assert sanity_check.stage in STAGES

    def test_honest_files_pass(self, sanity_check: SanityCheck, honest: Sequence[Case]) -> None:
        for view, context in honest:
            grave = [f for f in _asked(sanity_check, view, context) if f.severity != "warn"]
            assert grave == []

    def test_dishonest_files_do_not(
        self, sanity_check: SanityCheck, dishonest: Sequence[Case]
    ) -> None:
        for view, context in dishonest:
            grave = [f for f in _asked(sanity_check, view, context) if f.severity != "warn"]
            assert grave, f"nothing found in {view.rows[:1]}"

    def test_findings_repeat(
        self, make_sanity_check: Callable[[], SanityCheck], dishonest: Sequence[Case]
    ) -> None:
        first, second = make_sanity_check(), make_sanity_check()
        for view, context in dishonest:
            assert _asked(first, view, context) == _asked(second, view, context)

    def test_its_decoys_are_found(self, sanity_check: SanityCheck, honest: Sequence[Case]) -> None:
        decoy = getattr(sanity_check, "decoy", None)
        if decoy is None:
            pytest.skip("the check has no decoys")
        from dataclasses import replace

        from prime_core.testing.toy_submission import ToyContext

        made = 0
        for view, context in honest:
            rows = decoy(view, context)
            if rows is None or not isinstance(context, ToyContext):
                continue
            made += 1
            bad = replace(view, rows=tuple(rows))
            found = _asked(sanity_check, bad, replace(context, submission=bad))
            assert any(f.severity in ("reject", "slash") for f in found)
        assert made, "it makes no decoy of any honest file"


def _asked(check: SanityCheck, view: SubmissionView, context: CheckContext) -> list[Finding]:
    """The findings, each held to its form; a check may leave a broken file to `schema`."""
    try:
        findings = list(check.check(view, context))
    except FormatError as error:
        pytest.fail(f"a check reports what it finds, it doesn't raise it: {error}")
    for found in findings:
        assert isinstance(found, Finding), f"{found!r} is not a Finding"
        assert found.severity in SEVERITIES
        assert found.reason, "a finding without a reason"
        assert len(found.reason) <= MAX_REASON, "reasons are public: keep them short"
        assert "\n" not in found.reason
        assert found.row is None or 0 <= found.row < len(view.rows)
    return findings
