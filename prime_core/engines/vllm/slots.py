"""What a request of ours tells vLLM's workers, in `SamplingParams.extra_args`.

Written by the child, read by the logits processor and by the capture of prefills. Plain values
only, as vLLM sends them between its processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vllm import SamplingParams

RACE = "prime_race"
PREFILL = "prime_prefill"


@dataclass(frozen=True, slots=True)
class Slot:
    """One request's race.

    Attributes:
        key: the engine's name of the request.
        seed: the rollout's sampling seed.
        offset: model tokens of earlier turns.
        temperature: 0 for no race: the most probable token wins.
        wants_rows: whether hidden states are kept.
        output_ids: vLLM's own list of what the request has generated so far.
    """

    key: str
    seed: int
    offset: int
    temperature: float
    wants_rows: bool
    output_ids: Sequence[int]

    @property
    def position(self) -> int:
        """Index among the rollout's model tokens of the one that is chosen next."""
        return self.offset + len(self.output_ids)


def race_args(
    key: str, seed: int, offset: int, temperature: float, wants_rows: bool
) -> dict[str, Any]:
    """The extra arguments of a request that generates."""
    return {RACE: [key, str(seed), offset, temperature, wants_rows]}


def slot_of(params: SamplingParams, output_ids: Sequence[int]) -> Slot | None:
    """The race of a request, or None where it has none."""
    found = (params.extra_args or {}).get(RACE)
    if found is None:
        return None
    key, seed, offset, temperature, wants_rows = found
    return Slot(key, int(seed), offset, temperature, wants_rows, output_ids)


@dataclass(frozen=True, slots=True)
class PrefillJob:
    """What is wanted of a sequence; see `prime_core.api.PrefillRequest`."""

    key: str
    start: int
    temperature: float
    top: int
    seed: int | None
    positions: tuple[int, ...]
    last: int


def prefill_args(job: Mapping[str, Any]) -> dict[str, Any]:
    """The extra arguments of a prefill; `job` holds the fields of `PrefillJob`."""
    return {PREFILL: dict(job)}


def job_of(params: SamplingParams | None) -> PrefillJob | None:
    """The prefill that a request stands for, or None."""
    found = (params.extra_args or {}).get(PREFILL) if params is not None else None
    if found is None:
        return None
    seed = found["seed"]
    return PrefillJob(
        key=found["key"],
        start=found["start"],
        temperature=found["temperature"],
        top=found["top"],
        seed=None if seed is None else int(seed),
        positions=tuple(found["positions"]),
        last=found["last"],
    )
