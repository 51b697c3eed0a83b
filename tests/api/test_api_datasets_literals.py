"""Dicts stored as text: both notations, bounded, and never executed."""

from __future__ import annotations

import builtins
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api.datasets import read_mapping

KEYS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, VALUES, max_size=5))
def test_both_notations_read_back_what_was_written(value: dict[str, object]) -> None:
    assert read_mapping(repr(value)) == value
    assert read_mapping(json.dumps(value)) == value


def test_json_comes_first_and_python_words_are_read() -> None:
    assert read_mapping('{"a": null, "b": true}') == {"a": None, "b": True}
    assert read_mapping("{'a': None, 'b': True, 'c': (1, -2.5e3)}") == {
        "a": None,
        "b": True,
        "c": [1, -2500.0],
    }
    assert read_mapping("{'it\\'s': \"a 'quote'\", u'b': 'x' 'y'}") == {
        "it's": "a 'quote'",
        "b": "xy",
    }


def test_an_unknown_escape_is_text_and_no_warning() -> None:
    assert read_mapping(r"{'a': 'x \pi'}") == {"a": "x \\pi"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "{'a': nan}",
        '{"a": NaN}',
        "{'a': 1e999}",
        "{'a': {1, 2}}",
        "{'a': b'x'}",
        "{1: 2}",
        "{'a': 1+1}",
        "{'a': 2**99}",
        "{'a': f'{x}'}",
        "{'a': __import__('os')}",
        "{'a': x}",
        "{'a': [].append}",
        "dict(a=1)",
        "{'a': lambda: 1}",
        "{'a': 1} or {}",
        "{**{}}",
        "{'a': [0] * 9}",
        "{'a': 1",
        "{'a': '\\ud800'}",
        "{'a': 0x10}",
        "{'a': 1_000}",
        "{'a': 1j}",
        "{'a' 1}",
        "{'a': -+-1}",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 the reasons differ; that it's no other type counts
        read_mapping(text)


@pytest.mark.parametrize(
    "text",
    [
        "{'a': " + "[" * 100_000,
        "{'a': " + "[" * 100 + "]" * 100 + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "{'a': " + "-" * 100_000 + "1}",
        "{'a': " + "1" * 5000 + "}",
        "'" * 99_999,
        "\\" * 99_999,
        "{'a': '" + "\\'" * 100_000,
        "{" * 99_999 + "}" * 99_999,
        "(" * 90 + ")" * 90,
    ],
)
def test_size_and_nesting_are_bounded(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 as above
        read_mapping(text)


def test_more_than_sixteen_mebibytes_are_not_read() -> None:
    with pytest.raises(ValueError, match="at most 16777216"):
        read_mapping(" " * (16 * 2**20 + 1))


PUNCTUATION = (*"{}[]():,'\"\\-. \n\x00é", "**", "f'", "b'")
WORDS = ("a", "1", "e9", "None", "True", "open", "print(1)", "__import__('os').abort()")
PIECES = st.sampled_from(PUNCTUATION + WORDS)


@settings(max_examples=400)
@given(st.lists(PIECES, max_size=20).map("".join))
def test_no_text_runs_code_or_raises_another_error(text: str) -> None:
    touched: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builtins, "print", touched.append)
        try:
            value = read_mapping("{'k': " + text + "}")
        except ValueError:
            value = {}
    assert not touched
    assert isinstance(value, dict)
    assert all(isinstance(key, str) for key in value)
    assert not any(isinstance(item, float) and not math.isfinite(item) for item in value.values())
