"""What came of each test, and of all of them together.

Made by the judge, read by the verifier. Invariant: nothing here says what was expected, nor what a
program wrote, so that it may go into a log, a submission or a prompt.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal

from prime_core.api import Execution

TestStatus = Literal[
    "ok",
    "wrong_answer",
    "runtime_error",
    "time_limit",
    "memory_limit",
    "output_limit",
    "compile_error",
    "no_code",
    "no_entry_point",
    "bad_result_type",
]
# Nothing that could be compared came out: worth the lowest value, as a missing answer is.
NO_ANSWER: frozenset[str] = frozenset(
    {"no_code", "compile_error", "no_entry_point", "time_limit", "memory_limit", "output_limit"}
)
SHOWN = 200  # tests that the evidence lists one by one
MAX_DETAIL = 120  # characters


@dataclass(frozen=True, slots=True)
class TestVerdict:
    """One test.

    Attributes:
        status: ok, or why not.
        cpu_seconds: CPU time of the program.
        peak_memory: bytes, resident.
        detail: a short reason that the sandbox gave: cpu or wall, a signal, an exit code.
    """

    __test__ = False

    status: TestStatus
    cpu_seconds: float = 0.0
    peak_memory: int = 0
    detail: str = ""

    def evidence(self) -> dict[str, Any]:
        """The verdict as plain JSON."""
        return {
            "status": self.status,
            "cpu_ms": round(1000 * self.cpu_seconds, 1),
            "memory_mib": round(self.peak_memory / 2**20, 1),
            "detail": self.detail,
        }


@dataclass(frozen=True, slots=True)
class Judgement:
    """All tests of one program.

    Attributes:
        verdicts: one per test that ran, in order.
        total: how many tests the problem has.
        left_out: how many an option kept from running.
        form: how assertions were judged: taken_apart or second_jail; "" for other problems.
    """

    verdicts: tuple[TestVerdict, ...]
    total: int
    left_out: int = 0
    form: str = ""

    @property
    def passed(self) -> int:
        """How many tests are ok."""
        return sum(verdict.status == "ok" for verdict in self.verdicts)

    @property
    def solved(self) -> bool:
        """At least one test, and every one of them ran and is ok."""
        return 0 < self.total - self.left_out == len(self.verdicts) == self.passed

    @property
    def status(self) -> TestStatus:
        """Why the first test that isn't ok isn't; ok where there is none."""
        return next((v.status for v in self.verdicts if v.status != "ok"), "ok")

    def evidence(self) -> dict[str, Any]:
        """The judgement as plain JSON."""
        statuses = [verdict.status for verdict in self.verdicts]
        first = next((i for i, status in enumerate(statuses) if status != "ok"), None)
        evidence: dict[str, Any] = {
            "status": self.status,
            "tests": self.total,
            "run": len(self.verdicts),
            "passed": self.passed,
            "first_failure": first,
            "statuses": dict(Counter(statuses)),
            "cpu_seconds": round(sum(verdict.cpu_seconds for verdict in self.verdicts), 4),
            "results": [each.evidence() for each in self.verdicts[:SHOWN]],
        }
        if self.left_out:
            evidence["tests_left_out"] = self.left_out
        if self.form:
            evidence["assertions"] = self.form
        return evidence


def verdict_of(execution: Execution, status: TestStatus | None = None) -> TestVerdict:
    """The verdict of an execution; `status` where a comparison outside found more."""
    return TestVerdict(
        status or execution.status,
        execution.cpu_seconds,
        execution.peak_memory,
        execution.detail[:MAX_DETAIL],
    )
