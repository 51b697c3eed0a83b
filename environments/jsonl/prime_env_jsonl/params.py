"""The parameters: a data set, how it is asked, and what it declares about itself."""

from __future__ import annotations

from pydantic import Field, model_validator

from prime_core.api.datasets import DatasetSource


class JsonlParams(DatasetSource):
    """All fields of a data set source, and how its tasks are rendered and judged."""

    verifier: str = Field(
        "exact",
        min_length=1,
        description="name of the verifier plugin; its parameters go into "
        "the environment's verifier = {use, with}",
    )
    system_prompt: str = Field("", description="system message; a task's own one follows it")
    prompt_suffix: str = Field(
        "", description="appended to the last user message, e.g. Give the final number after ####."
    )
    answer_format: str = Field(
        "#### {gold}", description="how a right completion ends, for gold answers in checks"
    )
    licence: str = Field("unknown", description="licence of the data")
    score_range: tuple[float, float] = Field(
        (0.0, 1.0), description="lowest and highest value that the verifier gives"
    )

    @model_validator(mode="after")
    def _values_make_sense(self) -> JsonlParams:
        if "{gold}" not in self.answer_format:
            raise ValueError("answer_format must hold {gold}, the place of the answer")
        if not self.score_range[0] < self.score_range[1]:
            raise ValueError("score_range goes from the lowest to a higher value")
        return self
