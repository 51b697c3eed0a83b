"""Checkers for problems with several answers, and blocks of assertions in a second jail."""

from __future__ import annotations

from typing import Any

import pytest
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox, Score


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


def fenced(code: str) -> str:
    return f"```python\n{code}\n```"


def verdict(score: Score) -> tuple[float | None, str, object]:
    return score.value, score.status, score.evidence.get("status")


FACTOR = {
    "type": "function",
    "fn_name": "factor",
    "tests": [{"input": [n], "output": None} for n in (15, 21, 8)],
}
CHECK = """
def check(given, expected, output):
    return type(output) is int and 1 < output < given[0] and given[0] % output == 0
"""
FINDS = fenced("def factor(n): return next(i for i in range(n - 1, 1, -1) if n % i == 0)")


def test_a_checker_decides_where_answers_differ(jails: Sandbox, verifier: CodeVerifier) -> None:
    problem = {**FACTOR, "checker": {"source": CHECK}}
    assert verifier.judge_data(problem, FINDS).value == 1.0
    for wrong in ("1", "n", "'3'", "True", "[3]"):
        code = fenced(f"def factor(n): return {wrong}")
        assert verdict(verifier.judge_data(problem, code))[2] == "wrong_answer"
    named = CodeVerifier(
        CodeParams(), jails, {"divides": lambda given, _, out: given[0] % out == 0}
    )
    assert named.judge_data({**FACTOR, "checker": {"name": "divides"}}, FINDS).value == 1.0
    assert verdict(verifier.judge_data({**FACTOR, "checker": {"name": "x"}}, FINDS))[1] == "error"


@pytest.mark.parametrize("body", ["return 1", "1 / 0", "return None"])
def test_a_broken_checker_is_an_error_and_no_verdict(verifier: CodeVerifier, body: str) -> None:
    checker = {"source": f"def check(given, expected, output):\n    {body}"}
    assert verdict(verifier.judge_data({**FACTOR, "checker": checker}, FINDS))[:2] == (
        None,
        "error",
    )


@pytest.mark.parametrize(
    "odd", ["'15'", "[]", "{}", "'x' * 10**6", "[[]] * 1000", "{1 << 20_000: 1}"]
)
def test_an_output_that_breaks_a_checker_is_wrong_and_no_error(
    jails: Sandbox, verifier: CodeVerifier, odd: str
) -> None:
    fragile = "def check(given, expected, output):\n    return bool(output and output + 1 > 99)"
    code = fenced(f"def factor(n): return {odd}")
    for tests in (FACTOR["tests"], [{"input": [15], "output": 5}]):
        problem = {**FACTOR, "tests": tests, "checker": {"source": fragile}}
        assert verdict(verifier.judge_data(problem, code))[:2] == (0.0, "scored")
    named = CodeVerifier(CodeParams(), jails, {"fragile": lambda _, __, out: out and out + 1 > 99})
    problem = {**FACTOR, "checker": {"name": "fragile"}}
    assert verdict(named.judge_data(problem, code))[:2] == (0.0, "scored")


HUMANEVAL: dict[str, Any] = {
    "prompt": "from typing import List\n\ndef helper(x):\n    return x + 1\n\n"
    'def twice(xs: List[int], times=2) -> List[int]:\n    """Double."""\n',
    "entry_point": "twice",
    "test": "def check(candidate):\n    for n in range(3):\n"
    "        assert candidate([n]) == [helper(n) * 2 - 2]\n"
    "    assert candidate([1], times=3) == [3]\n"
    "    try:\n        candidate(None)\n        assert False\n"
    "    except TypeError:\n        pass\n",
}
GOOD = "def twice(xs: List[int], times=2):\n    return [x * times for x in xs]"


def test_a_block_that_cannot_be_taken_apart_runs_in_a_second_jail(verifier: CodeVerifier) -> None:
    score = verifier.judge_data(HUMANEVAL, fenced(GOOD))
    assert (score.value, score.evidence["assertions"]) == (1.0, "second_jail")
    body = fenced("    return [x * times for x in xs]")
    assert verifier.judge_data(HUMANEVAL, body).value == 1.0
    for wrong in (
        GOOD.replace("* times", "* 2"),
        "def twice(xs, times=2): return []",
        "def twice(xs, times=2): raise TypeError",
        GOOD.replace("return", "return xs and"),  # raises nothing for None
    ):
        assert verdict(verifier.judge_data(HUMANEVAL, fenced(wrong)))[:2] == (0.0, "scored")


def test_calls_that_depend_on_answers_are_made_in_order(verifier: CodeVerifier) -> None:
    block = (
        "def check(candidate):\n    x = 1\n    while x < 100:\n        y = candidate(x)\n"
        "        assert y == 2 * x\n        x = y\n    assert x == 128\n"
    )
    problem = {"prompt": "def f(x):\n    pass\n", "entry_point": "f", "test": block}
    assert verifier.judge_data(problem, fenced("def f(x): return 2 * x")).value == 1.0
    assert verifier.judge_data(problem, fenced("def f(x): return 3 * x")).value == 0.0


@pytest.mark.parametrize(
    "block",
    [
        "def check(candidate):\n    undefined(candidate)",
        "def check(candidate):\n    assert True",
        "def check(candidate):\n    while True: pass",
        "def check(candidate):\n    assert candidate(object()) == 1",
        "x = (",
    ],
)
def test_a_broken_block_is_an_error(verifier: CodeVerifier, block: str) -> None:
    problem = {"prompt": "", "entry_point": "f", "test": block, "time_limit_s": 0.5}
    score = verifier.judge_data(problem, fenced("def f(x): return 1"))
    assert (score.value, score.status) == (None, "error"), score
