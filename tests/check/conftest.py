"""Checks of small distributions, each run once however many tests look at it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from check_fixtures import write
from check_outcomes import SMALL
from check_words import Files

from prime_core.check.checking import Order, check
from prime_core.check.outcome import Report


@pytest.fixture(scope="session")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Report]:
    """Writes a distribution's files and checks them."""

    def run(files: Files, *rules: str, level: str = "silver", **more: object) -> Report:
        folder = write(files, tmp_path_factory.mktemp("distribution"))
        return check(Order(str(folder), level, rules, limits=SMALL, **more))

    return run
