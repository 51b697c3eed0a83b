"""Every rule has its page, word for word what the rule says."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.api import RunError
from prime_core.check.pages import explanation, pages
from prime_core.check.registry import chosen, find, rules

FOLDER = Path(__file__).parents[2] / "docs/checks"


def test_pages_are_what_the_rules_say() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages(), "run python -m prime_core.check.pages docs/checks"


def test_every_rule_explains_itself() -> None:
    for rule in rules():
        for text in (rule.title, rule.why, rule.fix, rule.bad, rule.good):
            assert len(text.strip()) >= 10, f"{rule.id} says too little: {text!r}"
        assert rule.title in explanation(rule.id)
        assert rule.name in explanation("list")


def test_a_rule_is_found_by_id_and_by_name() -> None:
    assert find("t01") is find("gold")
    assert [rule.id for rule in chosen("bronze", ["gold", "P02"])] == ["P02", "T01"]
    with pytest.raises(RunError, match="did you mean"):
        find("gld")


def test_a_level_holds_the_levels_below_it() -> None:
    counts = [len(chosen(level, [])) for level in ("bronze", "silver", "gold")]
    assert counts == sorted(counts)
    assert len(chosen("gold", [])) == len(rules())
