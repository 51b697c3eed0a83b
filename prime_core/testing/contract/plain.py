"""Shared by the contracts: whether data is plain JSON, and indices that sample a long list.

What crosses a host's pipe is JSON, so a tuple, a set or a NaN in a task would arrive changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest


def check_json(name: str, value: Any) -> None:
    """The value survives JSON unchanged."""
    plain = dict(value) if isinstance(value, Mapping) else value
    try:
        back = json.loads(json.dumps(plain, allow_nan=False))
    except (TypeError, ValueError) as error:
        pytest.fail(f"{name} is not plain JSON: {error}")
    assert back == plain, f"{name} changes when it's sent as JSON: {plain!r} becomes {back!r}"


def spread(count: int, most: int) -> list[int]:
    """Up to `most` indices below `count`: the first, the last, and evenly between."""
    if count <= most:
        return list(range(count))
    return sorted({index * (count - 1) // (most - 1) for index in range(most)})


def override(fixture: str, meaning: str) -> Any:
    """The body of a fixture that the inheriting class has to override."""
    pytest.fail(f"override the fixture {fixture!r} of this contract: {meaning}", pytrace=False)
