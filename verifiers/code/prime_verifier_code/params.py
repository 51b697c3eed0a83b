"""The parameters: every leniency and every limit of the verifier, each with its name."""

from __future__ import annotations

from pydantic import Field

from prime_core.api import IsolationLevel, Params
from prime_verifier_code.extraction import RuleName
from prime_verifier_code.schemas import SchemaName
from prime_verifier_code.text_rules import TextRules
from prime_verifier_code.value_rules import ValueRules


class CodeParams(Params):
    """How programs are taken out of completions, run and compared."""

    schema_name: SchemaName = Field(
        default="auto",
        alias="schema",
        description="schema of the tasks' verification data; auto looks",
    )
    extraction: RuleName = Field(
        default="last_block",
        description="last_block: the last complete Python block; whole: all of it",
    )
    text: TextRules = Field(default=TextRules(), description="comparison of standard output")
    values: ValueRules = Field(default=ValueRules(), description="comparison of returned values")
    time_limit_s: float = Field(
        default=6.0, gt=0, le=3600, description="CPU seconds a test, where the problem doesn't say"
    )
    time_limit_scale: float = Field(
        default=1.0, gt=0, le=100, description="the problem's own time limits times this"
    )
    total_time_limit_s: float | None = Field(
        default=None, gt=0, description="CPU seconds of all tests of one completion together"
    )
    memory_mb: int = Field(
        default=512, ge=16, le=65536, description="MiB of memory, where the problem doesn't say"
    )
    output_mb: int = Field(default=8, ge=1, le=256, description="MiB of output a test")
    min_isolation: IsolationLevel = Field(
        default="namespaces",
        description="weakest isolation that may judge; a host with less refuses",
    )
    max_tests: int | None = Field(
        default=None,
        ge=1,
        description="run only the tests with the longest inputs; the evidence counts the others",
    )
    partial: bool = Field(
        default=False,
        description="run every test and give the share that passed as the part passed_share; the "
        "value stays 0 or 1",
    )

    model_config = Params.model_config | {"populate_by_name": True}
