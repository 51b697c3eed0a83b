"""Attacks on what judges assertion blocks, and results that are costly to compare."""

from __future__ import annotations

import time
from typing import Any

import pytest
from code_attacks import BLOCK, LOOP, SQUARE, judge, marked
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


GATE_ATTACKS = {
    "replaced_gate": "def _prime_call(*a): return {'value': [9]}\ndef square(x): return 1",
    "nonsense_from_gate": "def _prime_call(*a): return {'value': [{'zz': [1]}]}",
    "code_from_gate": "def _prime_call(*a): return {'value': [{'o': ['__import__']}]}",
    "truth_of_everything": "class A:\n __bool__ = lambda s: True\ndef square(x): return A()",
    "raised_forever": "def _prime_call(*a): return {'raised': ['AssertionError']}",
    "unhashable_set": "def _prime_call(*a): return {'value': [{'s': [[1]]}]}",
    "missing": "def _prime_call(*a): return {'missing': []}",
    "deep_from_gate": "A = []\nfor _ in range(170): A = [A]\n"
    "def _prime_call(*a): return {'value': [A]}",
    "deep_error_from_gate": "A = []\nfor _ in range(170): A = [A]\n"
    "def _prime_call(*a): return {'raised': ['ValueError', 'x', [A]]}",
    "overflow_from_gate": "def _prime_call(*a): return {'value': [{'c': [1 << 2000, 0]}]}",
    "text_for_number_from_gate": "def _prime_call(*a): return {'value': [{'c': ['1', '2']}]}",
    "bytes_from_gate": "def _prime_call(*a): return {'value': [{'b': [300, None]}]}",
    "tuple_for_dict": "def _prime_call(*a): return ('value', [9])",
}


@pytest.mark.parametrize("name", marked(GATE_ATTACKS))
def test_the_gate_of_assertion_blocks_is_believed_no_more_than_a_result(
    verifier: CodeVerifier, name: str
) -> None:
    for problem in (BLOCK, LOOP):
        assert judge(verifier, problem, GATE_ATTACKS[name])[0] == "0"


COLLIDING = "[(2**61 - 1) * i for i in range(150_000)]"
DENIALS = {
    "colliding_list": f"def square(x): return {COLLIDING}",
    "colliding_keys": "import os\ndef square(x):\n items = []\n"
    f" for n in {COLLIDING}: items += [str(n), '0']\n"
    " os.write(3, ('[2,' + ','.join(items) + ']\\n').encode())\n os._exit(0)",
    "huge_integer": "def square(x): return 1 << 30_000_000",
    "never_the_same": "import time\ndef square(x): return time.time_ns()",
    "huge_text": "def square(x): return 'x' * (7 << 20)",
}
OPEN_BLOCK: dict[str, Any] = {
    "entry_point": "square",
    "prompt": "def square(x):\n    pass\n",
    "test": "def check(candidate):\n    x = 2\n    while x != 16:\n        x = candidate(x)\n"
    "    assert len(set([x])) == 1\n    assert len(set(candidate(4))) == 16",
    "time_limit_s": 0.5,
}
SETS = {"test_list": ["assert set(square(3)) == {9}"], "time_limit_s": 1.0}
PRODUCTS = {"test_list": ["assert square(3) * square(3) % square(3) == 1"], "time_limit_s": 1.0}


@pytest.mark.parametrize("name", DENIALS)
def test_a_result_that_is_costly_to_compare_is_a_wrong_answer_soon(
    verifier: CodeVerifier, name: str
) -> None:
    for problem in (SQUARE, SETS, PRODUCTS, OPEN_BLOCK):
        before = time.process_time()
        assert judge(verifier, problem, DENIALS[name])[0] == "0"
        assert time.process_time() - before < 20


@pytest.mark.parametrize(
    ("assertion", "program"),
    [
        ("square(3) % 5 == 4", "def square(x): return '%9999999999d'"),
        ("square(3) % (1, 2) == 4", "def square(x): return '%*d'"),
        (
            "square(3) * 10**7 == 9",
            "import collections\ndef square(x): return collections.deque(range(50_000))",
        ),
        ("sum(square(3), []) == [9]", "def square(x): return [[i] for i in range(90_000)]"),
    ],
)
def test_an_expression_fills_no_memory_and_takes_no_square_of_time(
    verifier: CodeVerifier, assertion: str, program: str
) -> None:
    before = time.process_time()
    problem = {"test_list": [f"assert {assertion}"], "time_limit_s": 2.0}
    assert judge(verifier, problem, program) == ("0", "wrong_answer")
    assert time.process_time() - before < 20


LOOPS = {
    "zip": "for got, want in zip(map(candidate, [1, 2, 3]), [1, 4, 9]): assert got == want",
    "map": "for got in map(candidate, [2, -2]): assert got == 4",
    "filter": "assert not list(filter(lambda x: candidate(x) != x * x, range(3)))",
    "iter": "for _ in iter(lambda: candidate(2), 4): assert False",
}
STOPS = {
    "program": "def square(x): raise StopIteration",
    "subclass": "class S(StopIteration): pass\ndef square(x): raise S",
    "gate": "def _prime_call(*a): return {'raised': ['StopIteration']}",
    "no_error": "def _prime_call(*a): return {'raised': ['exec']}",
    "no_name": "def _prime_call(*a): return {'raised': [[]]}",
}


@pytest.mark.parametrize("loop", LOOPS)
def test_a_program_cannot_end_a_blocks_loop(verifier: CodeVerifier, loop: str) -> None:
    problem = {
        "entry_point": "square",
        "prompt": "def square(x):\n    pass\n",
        "test": f"def check(candidate):\n    {LOOPS[loop]}",
        "time_limit_s": 1.0,
    }
    assert judge(verifier, problem, "def square(x): return x * x") == ("1", "ok")
    for program in STOPS.values():
        assert judge(verifier, problem, program)[0] == "0"


COMPOSED = {
    "twice": "assert candidate(candidate(2)) == 16",
    "caught": "\n    try: assert candidate(candidate(2)) == 16\n    except TypeError: pass",
    "in_a_list": "assert candidate([candidate(2)][0]) == 16",
    "set": "assert candidate(len(candidate(set(map(candidate, range(99)))) and [2])) == 1",
    "as_number": "assert int(candidate(2)) == 4 and candidate(3) == 9",
}
ESCAPES = {
    "object": "def square(x): return object()",
    "says_so": "def square(x): raise ValueError('PRIME_BAD_ARGUMENT an argument that')",
    "says_so_as_text": "def square(x): return 'PRIME_BAD_ARGUMENT an argument that'",
    "deep": "def square(x):\n    a = []\n    for _ in range(149): a = [a]\n    return a",
    "deeper": "def square(x):\n    return [x]",
    "collides": "def square(x): return x * (2**61 - 1) if type(x) is int else x",
    "endless": "import itertools\ndef square(x): return itertools.count()",
    "long_range": "def square(x): return range(0, 10**6, 1)",
}


@pytest.mark.parametrize("block", COMPOSED)
def test_a_result_that_goes_back_in_keeps_no_verdict_from_being_reached(
    verifier: CodeVerifier, block: str
) -> None:
    problem = {
        "entry_point": "square",
        "prompt": "def square(x):\n    pass\n",
        "test": f"def check(candidate):\n    if True: {COMPOSED[block]}",
        "time_limit_s": 1.0,
    }
    if block == "caught":
        problem["test"] = f"def check(candidate):{COMPOSED[block]}"
    for program in ESCAPES.values():
        assert judge(verifier, problem, program)[0] == "0"


def test_an_argument_that_cannot_cross_is_an_error_whatever_the_program(
    verifier: CodeVerifier,
) -> None:
    for call in ("candidate(object())", "candidate(lambda: 1)"):
        test = f"def check(candidate):\n    assert candidate(2) == 4\n    try: {call}\n"
        problem = {
            "entry_point": "square",
            "prompt": "def square(x):\n    pass\n",
            "test": test + "    except TypeError: pass",
            "time_limit_s": 1.0,
        }
        score = verifier.judge_data(problem, "```python\ndef square(x): return x * x\n```")
        assert score.status == "error"
