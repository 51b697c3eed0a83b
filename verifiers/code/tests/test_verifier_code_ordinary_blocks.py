"""Right and wrong functions under assertion blocks whose results or errors aren't plain JSON."""

from __future__ import annotations

from typing import Any

import pytest
from prime_verifier_code import CodeParams, CodeVerifier, marshalling

from prime_core.api import Sandbox

# What stands in the block, a program that passes it in a plain interpreter, one that doesn't.
RESULTS: dict[str, tuple[str, str, str]] = {
    "generator": (
        "assert list(f(3)) == [0, 1, 2]\nassert sorted(f(0)) == []",
        "def f(n): yield from range(n)",
        "def f(n): yield from range(n + 1)",
    ),
    "generator_is_no_list": (
        "assert list(f(2)) == [0, 1]\nassert f(2) != [0, 1]",
        "def f(n): yield from range(n)",
        "def f(n): return list(range(n))",
    ),
    "map": (
        "assert list(f(3)) == [0, 2, 4]\nassert sum(f(3)) == 6",
        "def f(n): return map(lambda x: 2 * x, range(n))",
        "def f(n): return map(lambda x: 3 * x, range(n))",
    ),
    "itertools": (
        "assert [list(x) for x in f(3)] == [[0, 1], [0, 2], [1, 2]]",
        "import itertools\ndef f(n): return itertools.combinations(range(n), 2)",
        "import itertools\ndef f(n): return itertools.permutations(range(n), 2)",
    ),
    "next": (
        "it = f(3)\nassert next(it) == 0 and next(it) == 1\nassert list(it) == [2]",
        "def f(n): return iter(range(n))",
        "def f(n): return iter(range(1, n))",
    ),
    "range": (
        "assert len(f(3)) == 3\nassert f(3) == range(3)",
        "def f(n): return range(n)",
        "def f(n): return list(range(n))",
    ),
    "keys": (
        "assert f(2) == {0, 1}\nassert sorted(f(2)) == [0, 1]",
        "def f(n): return {i: 0 for i in range(n)}.keys()",
        "def f(n): return {i: 0 for i in range(n)}.values()",
    ),
    "items": (
        "assert sorted(f(2)) == [(0, 0), (1, 1)]",
        "def f(n): return {i: i for i in range(n)}.items()",
        "def f(n): return {i: 0 for i in range(n)}.items()",
    ),
    "deque": (
        "assert list(f(3)) == [0, 1, 2]\nassert f(3)[1] == 1 and len(f(3)) == 3",
        "import collections\ndef f(n): return collections.deque(range(n))",
        "import collections\ndef f(n): return collections.deque(range(n + 1))",
    ),
    "range_as_argument": (
        "for i in range(4):\n    assert f(range(i)) == i",
        "def f(r): return len(r)",
        "def f(r): return 3",
    ),
    "message": (
        "try:\n    f(-1)\n    assert False\nexcept ValueError as e:\n    assert 'below' in str(e)",
        "def f(n):\n    if n < 0: raise ValueError(f'{n} is below 0')",
        "def f(n):\n    if n < 0: raise ValueError('no')",
    ),
    "arguments": (
        "try:\n    f(-1)\n    assert False\nexcept KeyError as e:\n"
        "    assert e.args == (-1,) and str(e) == '-1'",
        "def f(n): return {}[n]",
        "def f(n): raise KeyError('-1')",
    ),
    "own_exception": (
        "try:\n    f(-1)\n    assert False\nexcept LookupError as e:\n    assert str(e) == 'E: -1'",
        "class E(LookupError):\n    def __str__(self): return f'E: {self.args[0]}'\n"
        "def f(n): raise E(n)",
        "class E(ValueError): pass\ndef f(n): raise E('E: -1')",
    ),
    "decoding": (
        "try:\n    f(b'\\xff')\n    assert False\nexcept ValueError:\n    pass",
        "def f(b): return b.decode()",
        "def f(b): return b.decode('latin-1')",
    ),
    "generator_that_raises": (
        "try:\n    list(f(-1))\n    assert False\nexcept ValueError:\n    pass",
        "def f(n):\n    if n < 0: raise ValueError\n    yield n",
        "def f(n):\n    yield n",
    ),
}
# Each falls to a second jail, if it isn't there already.
FORCED = "for _ in range(1):\n    "


@pytest.fixture(scope="module")
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


def judged(verifier: CodeVerifier, block: str, program: str) -> Any:
    problem = {"type": "assertions", "fn_name": "f", "assertions": block, "time_limit_s": 2.0}
    return verifier.judge_data(problem, f"```python\n{program}\n```")


@pytest.mark.parametrize("name", RESULTS)
def test_a_block_says_of_a_function_what_it_says_in_a_plain_interpreter(
    verifier: CodeVerifier, name: str
) -> None:
    block, right, wrong = RESULTS[name]
    for text in (block, FORCED + block.replace("\n", "\n    ")):
        for program, value in ((right, 1.0), (wrong, 0.0)):
            names: dict[str, Any] = {}
            exec(program, names)
            try:
                exec(text, names)
                plain = 1.0
            except Exception:  # noqa: BLE001 - whatever the block makes of a wrong program
                plain = 0.0
            assert plain == value
            score = judged(verifier, text, program)
            assert score.value == value, score.evidence


@pytest.mark.parametrize(
    "program",
    [
        "import itertools\ndef f(n): return itertools.count()",
        "import itertools\ndef f(n): return itertools.repeat(n, 10**12)",
        "def f(n):\n    while True: yield n",
        "def f(n): return range(10**12)",
        "def f(n): return range(10**40)",
        "def _prime_call(*a): return {'value': [{'r': [0, 1 << 70, 1]}]}",
        "def _prime_call(*a): return {'value': [{'r': [0, 1]}]}",
        "def _prime_call(*a): return {'value': [{'r': ['', 1, 1]}]}",
        "def _prime_call(*a): return {'value': [{'m': [1, 2]}]}",
        "def _prime_call(*a): return {'value': [{'k': [[1]]}]}",
        "def _prime_call(*a): return {'raised': ['ValueError', 'x', [[{'zz': [1]}]]]}",
        "def _prime_call(*a): return {'raised': ['ValueError', 'x', 3]}",
        "def _prime_call(*a): return {'raised': ['ValueError', 3, []]}",
        "def _prime_call(*a): return {'raised': ['ExceptionGroup', 'x', []]}",
        "class E(ValueError):\n    def __str__(self): raise SystemExit\ndef f(n): raise E",
        "class E(ValueError):\n    args = property(lambda s: 1 / 0)\ndef f(n): raise E",
        "class E(ValueError):\n    def __str__(self): return self.x\n    x = 'y'\n"
        "    def __getattr__(self, n): return self\ndef f(n): raise E(E(E))",
        "def f(n): raise ValueError('x' * 10**6, [0] * 10**5)",
    ],
)
def test_what_is_endless_or_no_such_thing_is_wrong(verifier: CodeVerifier, program: str) -> None:
    for block in ("assert sum(f(3)) == 9", "for n in (1, 2):\n    assert list(f(n)) == [n]"):
        score = judged(verifier, block, program)
        assert score.value == 0.0, score.evidence


def test_values_come_back_as_they_were() -> None:
    for value in (range(1, 9, 2), {1: 2}.keys(), {1: 2}.items()):
        back = marshalling.decode(marshalling.encode(value))
        assert type(back) is type(value)
        assert back == value
    assert list(marshalling.decode(marshalling.encode(iter([1, (2,)])))) == [1, (2,)]
    assert list(marshalling.decode(marshalling.encode({1: 2}.values()))) == [2]
