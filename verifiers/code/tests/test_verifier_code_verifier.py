"""Scores: statuses, evidence, options, refusals; in real jails."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from prime_verifier_code import CodeParams, CodeVerifier, make, prime_verifiers
from pydantic import ValidationError

from prime_core.api import (
    Completion,
    Isolation,
    Jail,
    Limits,
    Message,
    Program,
    Sandbox,
    SandboxError,
    Score,
    Task,
    Verifier,
)
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import VerifierContract

DOUBLE: dict[str, Any] = {
    "type": "stdin",
    "tests": [{"input": f"{n}\n", "output": f"{2 * n}\n"} for n in (1, 20, -300)],
    "time_limit_s": 2.0,
}
ADD: dict[str, Any] = {
    "type": "function",
    "fn_name": "add",
    "tests": [{"input": [1, 2], "output": 3}, {"input": [5, -9], "output": -4}],
}
BLOCK: dict[str, Any] = {"test_list": ["assert add(1, 2) == 3", "assert add((1,), (2,)) == (1, 2)"]}


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def task(problem: dict[str, Any]) -> Task:
    return Task("t", (Message("user", "?"),), verification=problem)


class TestContract(VerifierContract):
    @pytest.fixture
    def make_verifier(self, jails: Sandbox, tmp_path: Path) -> Callable[[], Verifier]:
        return lambda: make(CodeParams(), OfflineContext(tmp_path, jails))

    @pytest.fixture
    def solved(self) -> Sequence[tuple[Task, str]]:
        return [
            (task(DOUBLE), fenced("print(2 * int(input()))")),
            (task(ADD), fenced("def add(a, b): return a + b")),
            (task(BLOCK), fenced("def add(a, b): return a + b")),
        ]

    @pytest.fixture
    def unsolved(self) -> Sequence[tuple[Task, str]]:
        return [
            (task(DOUBLE), fenced("print(2)")),
            (task(ADD), fenced("def add(a, b): return a - b")),
            (task(BLOCK), fenced("def add(a, b): return 3")),
            (task(ADD), "the sum"),
        ]


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


def verdict(score: Score) -> tuple[float | None, str, object]:
    return score.value, score.status, score.evidence.get("status")


@pytest.mark.parametrize(
    ("problem", "text", "expected"),
    [
        (DOUBLE, fenced("print(2 * int(input()))"), (1.0, "scored", "ok")),
        (DOUBLE, fenced("print(2)"), (0.0, "scored", "wrong_answer")),
        (DOUBLE, fenced("1 / 0"), (0.0, "scored", "runtime_error")),
        (DOUBLE, fenced("while True: pass"), (0.0, "invalid_output", "time_limit")),
        (DOUBLE, fenced("x = [0] * 10**9"), (0.0, "invalid_output", "memory_limit")),
        (DOUBLE, fenced("print('x' * (20 << 20))"), (0.0, "invalid_output", "output_limit")),
        (DOUBLE, fenced("print(("), (0.0, "invalid_output", "compile_error")),
        (DOUBLE, "2", (0.0, "invalid_output", "no_code")),
        (ADD, fenced("def sub(a, b): return a - b"), (0.0, "invalid_output", "no_entry_point")),
        (ADD, fenced("def add(a, b): return {a}"), (0.0, "scored", "bad_result_type")),
        (BLOCK, fenced("def sub(a, b): return a - b"), (0.0, "invalid_output", "no_entry_point")),
        (BLOCK, fenced("def add(a, b): return object()"), (0.0, "scored", "bad_result_type")),
    ],
)
def test_every_status(
    verifier: CodeVerifier, problem: dict[str, Any], text: str, expected: tuple[float, str, str]
) -> None:
    assert verdict(verifier.judge_data(problem, text)) == expected


@pytest.mark.parametrize(
    "code",
    [
        "class Solution:\n    def add(self, a: int, b: int) -> Optional[int]: return a + b",
        "add = lambda a, b: a + b",
        "from functools import partial\nimport operator\nadd = partial(operator.add)",
        "def add(a, b):\n    print('noise')\n    return a + b",
        "def add(*args):\n    return sum(args)\nif __name__ == '__main__':\n    print(input())",
    ],
)
def test_functions_are_found_as_people_write_them(verifier: CodeVerifier, code: str) -> None:
    assert verifier.judge_data(ADD, fenced(code)).value == 1.0


def test_the_names_of_a_prelude_are_there_where_the_problem_says_so(verifier: CodeVerifier) -> None:
    code = fenced("def add(a, b): return reduce(lambda x, y: x + y, deque([a, b]))")
    assert verdict(verifier.judge_data(ADD, code))[2] == "runtime_error"
    assert verifier.judge_data({**ADD, "prelude": "stdlib"}, code).value == 1.0


def test_evidence_names_isolation_cleaning_and_usage_but_nothing_expected(
    verifier: CodeVerifier, jails: Sandbox
) -> None:
    secret = {
        "type": "stdin",
        "tests": [{"input": "IN-1", "output": "OUT-1"}, {"input": "IN-2", "output": "OUT-2"}],
    }
    code = "import sys\nx = input()\nprint(x, file=sys.stderr)\nprint(x.replace('IN', 'OUT'))"
    for program in (code, code + "[:4]", code + "\nraise ValueError(x)"):
        evidence = verifier.judge_data(secret, fenced(program)).evidence
        text = json.dumps(evidence)
        assert "OUT" not in text
        assert "IN-" not in text
        assert evidence["isolation"] == jails.probe().evidence()
        assert evidence["cleaning"]["rule"] == "last_python_block"
        assert evidence["results"][0]["cpu_ms"] > 0


def test_it_stops_at_the_first_failure_unless_partial_credit_is_asked_for(jails: Sandbox) -> None:
    code = fenced("n = int(input())\nprint(2 * n if n != 1 else 3)")
    plain = CodeVerifier(CodeParams(), jails).judge_data(DOUBLE, code)
    assert (plain.value, plain.evidence["run"], plain.parts) == (0.0, 1, {})
    partial = CodeVerifier(CodeParams(partial=True), jails).judge_data(DOUBLE, code)
    assert (partial.value, partial.evidence["run"]) == (0.0, 3)
    assert partial.parts["passed_share"] == pytest.approx(2 / 3)


def test_tests_that_an_option_leaves_out_are_counted(jails: Sandbox) -> None:
    few = CodeVerifier(CodeParams(max_tests=1), jails)
    score = few.judge_data(DOUBLE, fenced("print(-600)"))
    assert (score.value, score.evidence["tests"], score.evidence["tests_left_out"]) == (1.0, 3, 2)


def test_a_total_time_limit(jails: Sandbox) -> None:
    limited = CodeVerifier(CodeParams(total_time_limit_s=0.001), jails)
    score = limited.judge_data(DOUBLE, fenced("print(2 * int(input()) + 0 * sum(range(10**6)))"))
    assert verdict(score)[2] == "time_limit"


def test_rules_of_the_problem_come_before_those_of_the_parameters(jails: Sandbox) -> None:
    code = fenced("print('YES' if int(input()) > 0 else 'no')")
    problem = {"type": "stdin", "tests": [{"input": "1", "output": "yes"}]}
    verifier = CodeVerifier(CodeParams(), jails)
    assert verifier.judge_data(problem, code).value == 0.0
    assert verifier.judge_data({**problem, "text": {"ignore_case": True}}, code).value == 1.0
    accepted = {**problem, "tests": [{"input": "1", "output": "yes", "accepted": ["YES"]}]}
    assert verifier.judge_data(accepted, code).value == 1.0


@pytest.mark.parametrize("problem", [{}, {"type": "stdin", "tests": []}, {**DOUBLE, "bad": 1}])
def test_a_problem_that_cannot_be_read_is_an_error(
    verifier: CodeVerifier, problem: dict[str, Any]
) -> None:
    score = verifier.judge_data(problem, fenced("print(1)"))
    assert (score.value, score.status, score.evidence["kind"]) == (None, "error", "problem")


class Weak:
    """A sandbox that launches nothing; it fails `failures` times, then hands on."""

    def __init__(self, inner: Sandbox, failures: int, isolation: Isolation | None = None) -> None:
        self.inner, self.failures = inner, failures
        self.isolation = isolation or inner.probe()

    def probe(self) -> Isolation:
        return self.isolation

    def open(self, program: Program, limits: Limits) -> Jail:
        if self.failures:
            self.failures -= 1
            raise SandboxError("the jail was lost")
        return self.inner.open(program, limits)

    def processes(self) -> frozenset[int]:
        return frozenset()

    def close(self) -> None:
        return None


def test_a_lost_jail_is_tried_once_more_and_then_an_error(jails: Sandbox) -> None:
    code = fenced("print(2 * int(input()))")
    assert CodeVerifier(CodeParams(), Weak(jails, 1)).judge_data(DOUBLE, code).value == 1.0
    score = CodeVerifier(CodeParams(), Weak(jails, 2)).judge_data(DOUBLE, code)
    assert (score.value, score.status, score.evidence["kind"]) == (None, "error", "sandbox")


def test_a_task_that_demands_more_isolation_is_refused(jails: Sandbox) -> None:
    weak = Weak(jails, 0, replace(jails.probe(), level="process"))
    verifier = CodeVerifier(CodeParams(), weak)
    code = fenced("print(2 * int(input()))")
    assert verifier.judge_data(DOUBLE, code).value == 1.0
    score = verifier.judge_data({**DOUBLE, "min_isolation": "namespaces"}, code)
    assert (score.value, score.status) == (None, "error")
    assert "doctor sandbox" in str(score.evidence["detail"]) or "isolation" in str(score.evidence)
    assert verifier.judge_data({**DOUBLE, "min_isolation": "x"}, code).status == "error"


def test_a_row_of_cases_becomes_a_task(verifier: CodeVerifier) -> None:
    row = {"id": "c1", "problem": DOUBLE, "completion": fenced("print(2 * int(input()))")}
    case, completion = verifier.from_case(row)
    assert (case.id, verifier.verify(case, completion).value) == ("c1", 1.0)
    results = verifier.verify(case, completion).evidence["results"]
    assert [result["status"] for result in results] == ["ok", "ok", "ok"]


def test_the_last_turn_counts(verifier: CodeVerifier) -> None:
    completion = Completion(fenced("print(2 * int(input()))"), (Message("assistant", "x"),))
    assert verifier.verify(task(DOUBLE), completion).value == 1.0


def test_unknown_parameters_are_refused() -> None:
    assert CodeParams.model_validate({"schema": "mbpp"}).schema_name == "mbpp"
    with pytest.raises(ValidationError, match="sheme"):
        CodeParams.model_validate({"sheme": "mbpp"})


def test_it_is_registered() -> None:
    assert [spec.name for spec in prime_verifiers()] == ["code"]
