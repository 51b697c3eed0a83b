"""The reference page is what the models say, and every key of theirs says what it is."""

from __future__ import annotations

from pathlib import Path

from prime_core.config import fields, reference
from prime_core.config.sections import RunConfig

PAGE = Path(__file__).parents[2] / "docs/reference/config.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == reference.markdown(), (
        "run: prime-core config schema --markdown > docs/reference/config.md"
    )


def test_every_key_has_a_one_line_help() -> None:
    for name, model, _ in [("", RunConfig, False), *fields.walk(RunConfig)]:
        for key, info in fields.fields(model).items():
            help_text = info.description or ""
            assert help_text, f"[{name}] {key}"
            assert "\n" not in help_text
            assert len(help_text) <= 80


def test_the_schema_speaks_the_files_names() -> None:
    schema = reference.json_schema()
    assert "async" in schema["properties"]
    assert "async_" not in schema["properties"]
    assert schema["additionalProperties"] is False
    assert "with" in schema["$defs"]["EngineSection"]["properties"]
