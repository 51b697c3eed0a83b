"""Assertion blocks taken apart, and the evaluator that decides them."""

from __future__ import annotations

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_code.assertions import Call, called_function, take_apart
from prime_verifier_code.expressions import Unsupported, check, evaluate


def value(text: str, **names: Any) -> Any:
    node = ast.parse(text, mode="eval").body
    check(node, frozenset(names))
    return evaluate(node, names)


@pytest.mark.parametrize(
    "text",
    [
        "[1, 2] + [3] * 2",
        "2.0 / 3.0",
        "{1: 'a', (2, 3): None}",
        "{1, 2} | {3}",
        "-5 // 2 ** 3 % 7",
        "1 < 2 <= 2 != 3",
        "not (1 and 0 or [])",
        "1 if 2 in (2, 3) else 4",
        "[1, 2, 3][1:][0]",
        "sorted(set([3, 1, 2]), reverse=True)",
        "abs(round(-2.567, 1)) < 1e9",
        "0**0",
        "1j * 2",
        "b'ab'[0]",
        "None is None",
    ],
)
def test_the_evaluator_says_what_python_says(text: str) -> None:
    assert value(text) == eval(text)


def test_the_evaluator_knows_some_of_math() -> None:
    assert value("math.isclose(x, math.pi, rel_tol=0.001)", x=3.1416)
    assert value("math.fabs(x) + math.floor(2.5)", x=-1.5) == 3.5


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "open('x')",
        "x",
        "(1).__class__",
        "'a'.join(['b'])",
        "[i for i in (1, 2)]",
        "lambda: 1",
        "max(*[1, 2])",
        "dict(**{})",
        "{**{}}",
        "f'{1}'",
        "math.os",
        "getattr(1, 'real')",
        "range(3)",
    ],
)
def test_the_evaluator_refuses_the_rest(text: str) -> None:
    with pytest.raises(Unsupported):
        value(text)


@pytest.mark.parametrize("text", ["9**9**9", "1 << 10**9", "[0] * 10**9", "10**7 * 'a' * 10"])
def test_sizes_are_bounded(text: str) -> None:
    with pytest.raises(OverflowError):
        value(text)


def test_a_humaneval_block_becomes_calls() -> None:
    block = """
METADATA = {'author': 'x'}

def check(candidate):
    assert candidate([1.0, 2], 0.5) == True, "message"
    assert abs(candidate(x=3.5) - 0.5) < 1e-6
    assert True, "this prints"
    limit = 4
    assert not candidate(limit, (1,), flag={1: 2})
check(has_close)
"""
    assertions = take_apart(block, "has_close")
    assert [each.calls for each in assertions] == [
        (Call(([1.0, 2], 0.5), {}),),
        (Call((), {"x": 3.5}),),
        (Call((4, (1,)), {"flag": {1: 2}}),),
    ]
    assert [each.holds([result]) for each, result in zip(assertions, [1, 0.5, 0], strict=True)]
    assert not assertions[0].holds([False])
    assert not assertions[1].holds(["0.5"])
    assert not assertions[2].holds([[0]])


def test_a_call_on_each_side_makes_two_calls() -> None:
    (only,) = take_apart("assert tuple(f([2, 1])) == tuple(sorted(f([1, 2])))", "f")
    assert only.calls == (Call(([2, 1],), {}), Call(([1, 2],), {}))
    assert only.holds([[1, 2], [2, 1]])


@pytest.mark.parametrize(
    ("block", "reason"),
    [
        ("for i in (1, 2):\n    assert f(i) == i", "For"),
        ("import random\nassert f(random.random())", "import"),
        ("assert f(f(1)) == 1", "call of f"),
        ("assert f(1) == 2 or f(2) == 1", "behind `or`"),
        ("assert 1 if f(1) else 2", "conditional"),
        ("assert f(*[1]) == 1", "starred"),
        ("assert f(1) == helper(2)", "helper"),
        ("f = 3\nassert f(1)", "assignment to the candidate"),
        ("a, b = 1, 2\nassert f(a)", "more than a name"),
        ("assert 1 == 2\nassert f(1)", "false of itself"),
        ("x = 1", "no assertion"),
        ("", "no assertion"),
        ("assert f(1 ==", "no Python"),
        ("assert f(1 / 0) == 1", "fails"),
        ("def check(candidate, more):\n    assert candidate(1)", "other arguments"),
        ("try:\n    f(1)\nexcept ValueError:\n    pass", "Try"),
        ("f(1)", "statement Expr"),
    ],
)
def test_other_forms_are_left_to_a_second_jail(block: str, reason: str) -> None:
    with pytest.raises(Unsupported, match=reason):
        take_apart(block, "f")


@pytest.mark.parametrize(
    ("block", "name"),
    [
        ("assert f(1) == 2", "f"),
        ("import math\nassert math.isclose(area(1), 3.1)", "area"),
        ("assert set(f([1])) == set([1])", "f"),
        ("assert sum(10, 15) == 6", "sum"),
        ("assert 1 == 1", None),
        ("assert (", None),
    ],
)
def test_the_function_under_test_is_the_one_python_lacks(block: str, name: str | None) -> None:
    assert called_function(block) == name


@given(st.recursive(st.integers() | st.floats() | st.text() | st.none(), st.lists, max_leaves=8))
def test_no_result_makes_an_assertion_raise(result: Any) -> None:
    block = "assert abs(f(1) - 2) < 1e-6\nassert sorted(f(2))[0] == 'a'\nassert set(f(3)) == {1}"
    for each in take_apart(block, "f"):
        assert each.holds([result]) in (True, False)
