"""The parameters: which problems, how they are asked, and how carefully a data set is checked."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator

from prime_core.api import Params
from prime_core.api.datasets import DatasetSource, SplitName

DEFAULT_TEMPLATE = (
    "{problem}\n\nAnswer in Python 3. Put the complete program, or the function with everything it "
    "needs, in one code block that starts with ```python."
)
SchemaName = Literal["own", "genesys", "livecodebench", "apps", "humaneval", "mbpp", "mbpp_full"]

# Columns of the public files; a config's own `columns` come over these.
COLUMNS: dict[str, dict[str, Any]] = {
    "own": {},
    "genesys": {},
    "humaneval": {
        "columns": {
            "problem_id": "task_id",
            "prompt": "prompt",
            "gold_standard_solution": "{prompt}{canonical_solution}",
        },
        "verification_columns": ("prompt", "entry_point", "test"),
    },
    "mbpp": {
        "columns": {
            "problem_id": "task_id",
            "prompt": "prompt",
            "gold_standard_solution": "code",
        },
        "verification_columns": ("test_imports", "test_list"),
    },
    "mbpp_full": {
        "columns": {"problem_id": "task_id", "prompt": "text", "gold_standard_solution": "code"},
        "verification_columns": ("test_setup_code", "test_list"),
    },
    "livecodebench": {
        "columns": {"problem_id": "question_id", "prompt": "question_content"},
        "verification_columns": ("public_test_cases", "private_test_cases", "metadata"),
        "metadata_columns": ("starter_code",),
    },
    "apps": {
        "columns": {"prompt": "question"},
        "verification_columns": ("input_output",),
    },
}


class ProceduralParams(Params):
    """Own problems, made on this machine."""

    difficulty: Literal["easy", "medium", "hard", "mixed"] = Field(
        default="mixed", description="how hard the problems are"
    )
    kind: Literal["stdin", "function", "both"] = Field(
        default="both", description="ask for a program, for a function, or for either"
    )
    split: SplitName = Field(default="train", description="train, test (held out by hash) or all")
    test_share: float = Field(default=0.1, gt=0, lt=1, description="share of the problems held out")
    limit: int = Field(default=500, ge=1, le=100_000, description="at most this many tasks")
    seed: int = Field(default=0, ge=0, lt=2**63, description="seed of choice and order")


class CodeDataset(DatasetSource):
    """A file of problems in one of the public schemas."""

    schema_name: SchemaName = Field(
        default="own", alias="schema", description="schema of the rows; sets columns"
    )
    licence: str = Field(default="unknown", description="licence of the data")

    model_config = DatasetSource.model_config | {"populate_by_name": True}

    @model_validator(mode="before")
    @classmethod
    def _schema_columns(cls, given: Any) -> Any:
        """What the schema says where the config doesn't."""
        if not isinstance(given, dict):
            return given
        name = given.get("schema", given.get("schema_name", "own"))
        preset = COLUMNS.get(str(name), {})
        columns = {**preset.get("columns", {}), **(given.get("columns") or {})}
        return {**preset, **given, "columns": columns}


class CodeEnvParams(Params):
    """Where the problems come from, and how they are asked."""

    problems: ProceduralParams = Field(
        default=ProceduralParams(), description="own problems, without a data set"
    )
    dataset: CodeDataset | None = Field(
        default=None, description="a data set instead of own problems"
    )
    system_prompt: str = Field(default="", description="system message")
    prompt_template: str = Field(
        default=DEFAULT_TEMPLATE, description="the user message; {problem} is the problem's place"
    )
    shown_assertions: int = Field(
        default=1, ge=0, description="assertions that a prompt of MBPP shows, to say the interface"
    )
    sanity: Literal["off", "static", "full"] = Field(
        default="static",
        description="checks of a data set on load; static: readable, no contradictions, at least "
        "two distinct outputs; full: also runs the reference and programs that must fail",
    )
    on_bad_problem: Literal["drop", "refuse"] = Field(
        default="drop", description="drop: leave a problem out and say so; refuse: stop"
    )

    @field_validator("prompt_template")
    @classmethod
    def _holds_the_problem(cls, template: str) -> str:
        if "{problem}" not in template:
            raise ValueError("prompt_template must hold {problem}, the problem's place")
        return template

    @model_validator(mode="after")
    def _one_origin(self) -> CodeEnvParams:
        if self.dataset is not None and "problems" in self.model_fields_set:
            raise ValueError("give either problems or dataset, not both")
        return self
