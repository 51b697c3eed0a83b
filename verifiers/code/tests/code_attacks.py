"""Problems that attacks are tried on, how one is judged, and which attacks take seconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from prime_verifier_code import CodeVerifier

SQUARE: dict[str, Any] = {
    "type": "function",
    "fn_name": "square",
    "tests": [{"input": [3], "output": 9}, {"input": [-4], "output": 16}],
    "time_limit_s": 1.0,
    "memory_mb": 128,
}
TOTAL: dict[str, Any] = {
    "type": "stdin",
    "tests": [{"input": "1 2\n", "output": "3\n"}, {"input": "5 6\n", "output": "11\n"}],
    "time_limit_s": 1.0,
    "memory_mb": 128,
}
YES_NO: dict[str, Any] = {
    "type": "stdin",
    "tests": [{"input": "1\n", "output": "YES\n"}, {"input": "2\n", "output": "NO\n"}],
    "time_limit_s": 1.0,
    "memory_mb": 128,
}
BLOCK: dict[str, Any] = {
    "test_list": ["assert square(3) == 9", "assert square(-4) == 16"],
    "time_limit_s": 1.0,
}
LOOP: dict[str, Any] = {
    "entry_point": "square",
    "prompt": "def square(x):\n    pass\n",
    "test": "def check(candidate):\n    for x in range(-5, 6):\n        assert candidate(x) == x*x",
    "time_limit_s": 1.0,
}


def judge(verifier: CodeVerifier, problem: dict[str, Any], code: str) -> tuple[str, str]:
    score = verifier.judge_data(problem, f"```python\n{code}\n```")
    if score.status == "error":
        return ("error", str(score.evidence["detail"]))
    assert score.value is not None
    return (f"{score.value:g}", str(score.evidence["status"]))


# They use their time or memory up: seconds each.
SLOW = frozenset(
    {
        *("busy", "sleeps", "regex", "memory", "huge_int", "unfinished_thread", "recursion"),
        *("wide", "deep", "huge_text", "right_then_loop", "right_then_thread", "right_then_flood"),
        *("thread_bomb", "fork_bomb", "inodes", "zip_bomb", "nested_parser", "signals_ignored"),
        "raised_forever",
    }
)
QUICK_SAMPLE = ("busy", "fork_bomb", "wide")  # of each sort one runs every time


def marked(names: Iterable[str]) -> list[Any]:
    slow = [name for name in names if name in SLOW and name not in QUICK_SAMPLE]
    quick = [name for name in names if name not in slow]
    return [*quick, *(pytest.param(name, marks=pytest.mark.slow) for name in slow)]
