"""Both modes keep the contract of verifiers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from prime_verifier_exact import ExactParams, make

from prime_core.api import Message, Task, Verifier
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import VerifierContract

Case = tuple[Task, str]


def task(gold: str) -> Task:
    return Task(f"gold {gold}", (Message("user", "?"),), gold)


class TestNumber(VerifierContract):
    @pytest.fixture(params=[False, True], ids=["marker", "last_number"])
    def make_verifier(self, request: pytest.FixtureRequest) -> Callable[[], Verifier]:
        return lambda: make(ExactParams(last_number=request.param), OfflineContext(Path("unused")))

    @pytest.fixture
    def solved(self) -> Sequence[Case]:
        return [
            (task("42"), "#### 42"),
            (task("1,234.5"), "so\n#### $1234.50."),
            (task("0.5"), "#### 1/2"),
        ]

    @pytest.fixture
    def unsolved(self) -> Sequence[Case]:
        return [(task("42"), "#### 41"), (task("42"), "####"), (task("42"), "#### 42 #### 7")]


class TestText(VerifierContract):
    @pytest.fixture
    def make_verifier(self) -> Callable[[], Verifier]:
        return lambda: make(ExactParams(mode="text"), OfflineContext(Path("unused")))

    @pytest.fixture
    def solved(self) -> Sequence[Case]:
        return [(task("the cat"), " the\ncat "), (task("é"), "é")]

    @pytest.fixture
    def unsolved(self) -> Sequence[Case]:
        return [(task("the cat"), "The cat"), (task("the cat"), "the cat.")]
