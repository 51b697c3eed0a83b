"""math-verify as a second opinion: it may differ, and it's optional."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from prime_verifier_math import MathParams, make

from prime_core.api import Completion, PluginError, Task
from prime_core.testing.context import OfflineContext


def says(gold: str, text: str) -> float | None:
    verifier = make(MathParams(), OfflineContext(Path("unused")))
    return verifier.second_opinion(Task("1", (), gold), Completion(text))


def test_it_agrees_on_plain_answers() -> None:
    pytest.importorskip("math_verify", reason="the extra second-opinion isn't installed")
    assert says(r"\frac12", r"so \boxed{0.5}") == 1.0
    assert says("3", r"so \boxed{4}") == 0.0
    assert says("3", r"<think>\boxed{4}</think> so \boxed{3}") == 1.0
    assert says("#### 3", r"\boxed{3}") == 1.0


def test_it_has_no_opinion_on_a_gold_that_it_cannot_read() -> None:
    pytest.importorskip("math_verify", reason="the extra second-opinion isn't installed")
    assert says(r"\boxed{}", r"\boxed{4}") is None


def test_without_the_package_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "math_verify", None)
    with pytest.raises(PluginError, match=r"pip install 'prime-verifier-math\[second-opinion\]'"):
        says("3", "4")
