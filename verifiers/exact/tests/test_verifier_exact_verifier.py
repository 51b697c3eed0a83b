"""Verdicts of both modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_exact import ExactParams, make
from pydantic import ValidationError

from prime_core.api import Completion, Score, Task
from prime_core.testing.context import OfflineContext


def verdict(text: str, gold: str | None = "42", **params: object) -> tuple[str, float | None]:
    verifier = make(ExactParams.model_validate(params), OfflineContext(Path("unused")))
    score = verifier.verify(Task("1", (), gold), Completion(text))
    assert isinstance(score, Score)
    return score.status, score.value


RIGHT, WRONG, NONE = ("scored", 1.0), ("scored", 0.0), ("invalid_output", 0.0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("6 * 7 = 42\n#### 42", RIGHT),
        ("####42", RIGHT),
        ("#### 42.\nThat is all.", RIGHT),
        ("#### 42.00 dollars", RIGHT),
        ("#### $42", RIGHT),
        ("#### 41", WRONG),
        ("42", NONE),
        ("#### forty-two", NONE),
        ("####", NONE),
        ("", NONE),
        # The last marker counts: naming several answers wins nothing.
        ("#### 41 #### 42", RIGHT),
        ("#### 42 #### 41", WRONG),
        ("#### 42\n####", NONE),
        ("#### 4 2", WRONG),
        ("\x00#### 42\ud800", NONE),
        ("\ud800\x00 #### 42", RIGHT),
    ],
)
def test_number_mode_judges_what_stands_behind_the_last_marker(
    text: str, expected: tuple[str, float]
) -> None:
    assert verdict(text) == expected


def test_the_fallback_is_off_unless_asked_for() -> None:
    assert verdict("so it is 42.") == NONE
    assert verdict("so it is 42.", last_number=True) == RIGHT
    assert verdict("40, or 2", last_number=True) == WRONG
    # A marker with nothing behind it is an answer not given, not an invitation to guess.
    assert verdict("42 ####", last_number=True) == NONE


def test_gold_may_be_a_whole_solution() -> None:
    assert verdict("#### 18", "9 * 2 = <<9*2=18>>18\n#### 18") == RIGHT


@pytest.mark.parametrize("gold", [None, "", "about four", "#### x"])
def test_a_gold_answer_that_is_no_number_is_an_error_not_a_wrong_answer(gold: str | None) -> None:
    assert verdict("#### 42", gold) == ("error", None)


@pytest.mark.parametrize(
    ("text", "params", "expected"),
    [
        ("  The\n cat ", {}, RIGHT),
        ("the cat", {}, WRONG),
        ("THE CAT", {"ignore_case": True}, RIGHT),
        ("The  cat", {"whitespace": "strip"}, WRONG),
        (" The cat\n", {"whitespace": "strip"}, RIGHT),
        (" The cat", {"whitespace": "exact"}, WRONG),
        (" \n", {}, NONE),
        ("I think</think> The cat", {"marker": "</think>"}, RIGHT),
        ("The cat", {"marker": "</think>"}, NONE),
        ("The cat\x00", {}, WRONG),
    ],
)
def test_text_mode(text: str, params: dict[str, object], expected: tuple[str, float]) -> None:
    assert verdict(text, "The cat", mode="text", **params) == expected


@pytest.mark.parametrize("gold", [None, "", " "])
def test_an_empty_gold_text_is_an_error(gold: str | None) -> None:
    assert verdict("", gold, mode="text") == ("error", None)


@given(st.text(), st.sampled_from(["number", "text"]))
def test_any_completion_gets_a_verdict_and_always_the_same(text: str, mode: str) -> None:
    assert verdict(text, mode=mode) == verdict(text, mode=mode)
    assert verdict(text, mode=mode)[0] in ("scored", "invalid_output")


def test_long_completions_are_judged() -> None:
    assert verdict("x " * 500_000 + "#### 42") == RIGHT
    assert verdict("#### 42" + " x" * 500_000) == RIGHT
    assert verdict("#" * 1_000_000) == NONE
    assert verdict("1,1" * 300_000, last_number=True) == NONE
    assert verdict("#### " + "4" * 1_000_000) == NONE


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"mode": "regex"}, "number"),
        ({"mode": "number", "ignore_case": True}, "belongs to mode text"),
        ({"mode": "text", "last_number": True}, "belongs to mode number"),
        ({"marker": ""}, "at least 1 character"),
    ],
)
def test_params_that_make_no_sense_are_refused(params: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ExactParams.model_validate(params)
