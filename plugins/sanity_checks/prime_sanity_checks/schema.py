"""Check `schema`: the file decodes, within limits, by the very reader that the trainer uses."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from prime_core.api import (
    CheckContext,
    Context,
    Finding,
    FormatError,
    Params,
    SanityCheckSpec,
    Stage,
    SubmissionView,
)


class SchemaParams(Params):
    """Parameters of the check `schema`."""

    time_limit_s: float = Field(30.0, gt=0, description="CPU seconds that decoding may take")
    memory_mb: int = Field(2048, gt=0, description="address space of the decoding process, MiB")


class Schema:
    """Reads the file in a process that can be killed."""

    stage: Stage = "file"

    def __init__(self, params: SchemaParams) -> None:
        self._params = params

    def check(self, submission: SubmissionView, context: CheckContext) -> Sequence[Finding]:
        """A finding where the bytes break the format or a limit."""
        try:
            context.read(time_limit_s=self._params.time_limit_s, memory_mb=self._params.memory_mb)
        except FormatError as error:
            where = f"{error.where}: " if error.where else ""
            return [Finding("reject", f"{where}{error.what}"[:250].replace("\n", " "))]
        return []


def make_schema(params: SchemaParams, context: Context) -> Schema:
    """Factory of the spec."""
    return Schema(params)


SPEC = SanityCheckSpec(
    name="schema",
    params=SchemaParams,
    factory=make_schema,
    summary="Decodes the file by the trainer's reader in a process with limits",
    cost="one decoding of the file",
    catches="malformed and oversized files, bombs, NaN, wrong types, broken groups",
)
