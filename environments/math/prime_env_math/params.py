"""The parameters: where the problems come from, how they are asked, and what is refused."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from prime_core.api import Params
from prime_core.api.datasets import DatasetSource, SplitName
from prime_env_math.prompts import EXAMPLES, Example, StyleName
from prime_env_math.sources import SourceName
from prime_env_math.topics import TOPICS, Level, Topic

PROCEDURAL_ONLY = ("topics", "levels", "split", "test_share", "limit", "seed")
DATASET_ONLY = ("duplicates", "evaluation_sets", "overlap", "ngram")

Policy = Literal["refuse", "drop", "report"]


class MathParams(Params):
    """One source of problems and one way of asking them."""

    source: Literal["procedural", "custom"] | SourceName = Field(
        "procedural",
        description="procedural, the layout of a public data set, or custom (own columns)",
    )
    dataset: DatasetSource | None = Field(
        None, description="where the data set lies, its digest, split, limit and own columns"
    )
    topics: tuple[Topic, ...] = Field(TOPICS, min_length=1, description="procedural: fields")
    levels: tuple[Level, ...] = Field((1, 2, 3), min_length=1, description="procedural: levels")
    split: SplitName = Field("train", description="procedural: train, test (by hash) or all")
    test_share: float = Field(0.1, gt=0, lt=1, description="procedural: share held out")
    limit: int = Field(10_000, ge=1, le=1_000_000, description="procedural: at most so many tasks")
    seed: int = Field(0, ge=0, lt=2**63, description="procedural: seed of the order")
    style: StyleName = Field(
        "boxed", description="how the answer is asked for: boxed, gsm8k (after ####) or plain"
    )
    instruction: str | None = Field(
        None, description="replaces the style's sentence behind the problem; '' for none"
    )
    system_prompt: str = Field("", description="system message; a task's own one follows it")
    few_shot: int = Field(0, ge=0, description="worked examples before the problem")
    examples: tuple[Example, ...] = Field(
        EXAMPLES, description="the worked examples; the first few_shot of them are shown"
    )
    duplicates: Policy = Field(
        "drop", description="a problem that stood before: refuse, drop or report"
    )
    evaluation_sets: tuple[DatasetSource, ...] = Field(
        (), description="data sets that must not be trained on; overlaps are looked for"
    )
    overlap: Policy = Field(
        "refuse", description="a problem of an evaluation set: refuse, drop or report"
    )
    ngram: int = Field(
        13, ge=5, le=50, description="that many words in a row in common are an overlap"
    )
    verifier: str = Field("math", min_length=1, description="name of the verifier plugin")
    licence: str | None = Field(None, description="licence of the data, where it isn't known")

    @model_validator(mode="after")
    def _parts_fit_together(self) -> MathParams:
        given = self.model_fields_set
        if self.source == "procedural":
            unfit = [name for name in ("dataset", *DATASET_ONLY) if name in given]
            if unfit:
                raise ValueError(f"{unfit[0]} belongs to a data set, not to source procedural")
        else:
            unfit = [name for name in PROCEDURAL_ONLY if name in given]
            if unfit:
                raise ValueError(
                    f"{unfit[0]} belongs to source procedural; a data set has its own in dataset"
                )
            if self.dataset is None:
                raise ValueError(f'source {self.source} needs dataset = {{ url = "..." }}')
        if self.few_shot > len(self.examples):
            raise ValueError(f"few_shot is {self.few_shot}, and there are {len(self.examples)}")
        return self
