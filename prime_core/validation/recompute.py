"""Recomputes what a node had to do: prompts, forward passes, scores. One policy at a time.

The validator's contexts share one `Recomputer`; it holds the engine, the environment hosts and the
event loop that they live in. A version is loaded once for all files that are judged in a row.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from prime_core.api import (
    EngineError,
    FormatError,
    InferenceEngine,
    IntegrityError,
    PolicyFiles,
    PrefillRequest,
    PrimeError,
    RolloutView,
    StoreError,
)
from prime_core.api.check_facts import Rescored, RowPrefill
from prime_core.assignment import AssignmentKey, EnvironmentShare, assign, beacon
from prime_core.toploc import ChunkVerdict, ProofError, Thresholds, verify_proofs

if TYPE_CHECKING:
    from prime_core.engines.planning import PlannedGroup, Planner
    from prime_core.validation.rescoring import Rescorer

_R = TypeVar("_R")

ROWS_A_PASS = 32  # rows whose hidden states are held at once


class EventLoop:
    """An asyncio loop in a thread, for the hosts; its callers block."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="hosts", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, _R]) -> _R:
        """Run a coroutine to its end."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def close(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def of_store(read: Callable[[int], _R]) -> Callable[[int], _R]:
    """A reader of policies for which a damaged one is the store's fault, and no file's."""

    def reading(version: int) -> _R:
        try:
            return read(version)
        except (FormatError, IntegrityError) as error:
            raise StoreError(error.what, where=error.where, fix=error.fix) from error

    return reading


class Planned(Protocol):
    """The part of a submission's name that its assignment depends on."""

    @property
    def step(self) -> int: ...
    @property
    def node(self) -> str: ...
    @property
    def n(self) -> int: ...
    @property
    def groups(self) -> int: ...
    @property
    def group_size(self) -> int: ...
    @property
    def policy_version(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Computed:
    """One row's forward pass, and its commitments beside it; `proof_error` where they are bad."""

    prefill: RowPrefill
    chunks: tuple[ChunkVerdict, ...]
    proof_error: str


@dataclass
class Recomputer:
    """What recomputing depends on.

    Attributes:
        fetch: a sealed version on local disk, every byte checked.
        seal: seal of a sealed version.
        planner_of: planner for a node class.
    """

    run_id: str
    engine: InferenceEngine
    fetch: Callable[[int], PolicyFiles]
    seal: Callable[[int], bytes]
    shares: Sequence[EnvironmentShare]
    planner_of: Callable[[str], Planner]
    rescorer: Rescorer
    loop: EventLoop
    temperature: float
    loaded: int | None = None
    loads: int = 0

    def plan(self, submission: Planned, node_class: str) -> list[PlannedGroup]:
        """Every group that the node had to generate, with its prompt.

        Raises:
            PrimeError: the version isn't sealed, or the environment fails.
        """
        seal = self.seal(submission.policy_version)
        key = AssignmentKey(
            self.run_id,
            beacon(self.run_id, seal),
            submission.node,
            submission.step,
            submission.n,
        )
        assigned = assign(key, self.shares, submission.groups, submission.group_size)
        return self.loop.run(self.planner_of(node_class).plan(key, assigned))

    def rescore(
        self, group: PlannedGroup, rows: Sequence[RolloutView], step: int
    ) -> list[Rescored]:
        """Scores and rewards of one group's rows."""
        return self.loop.run(self.rescorer.rescore(group, rows, step))

    def compute(self, version: int, rows: Sequence[RolloutView]) -> list[Computed]:
        """The forward passes of rows of one version, and the comparison of their commitments.

        Raises:
            StoreError: the version can't be loaded, or the engine dies: no row's fault.
            PrimeError: the engine refuses a row.
        """
        self._load(version)
        found: list[Computed] = []
        # neighbours in length share a pass, so that little of it is padding
        order = sorted(range(len(rows)), key=lambda index: len(rows[index].completion_tokens))
        for start in range(0, len(order), ROWS_A_PASS):
            part = [rows[index] for index in order[start : start + ROWS_A_PASS]]
            requests = [prefill_request(row, self.temperature) for row in part]
            try:
                prefills = self.engine.prefill(requests)
            except Exception as error:
                if not _is_ours(error):
                    raise
                self.loaded = None  # whatever is left of the engine loads anew
                raise _of_engine(error) from error
            for row, prefill in zip(part, prefills, strict=True):
                own = np.asarray(row.completion_mask, dtype=bool)
                if prefill.draws is None:
                    raise EngineError(
                        "its prefill replays no race, so nothing can be validated with it",
                        where=f"engine {self.engine.capabilities.name}",
                        fix="use an engine whose prefill answers with draws",
                    )
                values = RowPrefill(
                    logprobs=np.asarray(prefill.logprobs, dtype=np.float64)[own],
                    means=prefill.draws.means[own],
                    variances=prefill.draws.variances[own],
                    race_gaps=prefill.draws.race_gaps[own],
                    lower=prefill.draws.lower[own],
                    upper=prefill.draws.upper[own],
                )
                found.append(_with_proofs(row, values, prefill.hidden_states[own]))
        by_row = dict(zip(order, found, strict=True))
        return [by_row[index] for index in range(len(rows))]

    def _load(self, version: int) -> None:
        if self.loaded == version:
            return
        self.loaded = None
        policy = self.fetch(version)
        try:
            digest = self.engine.load(policy)
        except (EngineError, FormatError, IntegrityError, MemoryError) as error:
            raise _of_engine(error) from error
        if digest != policy.digest:
            raise StoreError(
                f"the engine loaded another policy than version {version}",
                where=f"engine {self.engine.capabilities.name}",
                fix="report it to the engine's authors: load() returns the digest of what it read",
            )
        self.loaded, self.loads = version, self.loads + 1


def _is_ours(error: Exception) -> bool:
    """Whether a forward pass failed for the engine's own reasons: it says `prefill` of a row's."""
    if isinstance(error, EngineError):
        return error.where != "prefill"
    # torch says so by a class of its own, which isn't imported here
    return isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"


def _of_engine(error: Exception) -> StoreError:
    said = error.what if isinstance(error, PrimeError) else f"{type(error).__name__}: {error}"
    fix = error.fix if isinstance(error, PrimeError) else "give the validator more memory"
    return StoreError(f"the validator's engine: {said}", where="prefill", fix=fix)


def prefill_request(row: RolloutView, temperature: float) -> PrefillRequest:
    """What is asked of the engine about a row: its whole sequence, with its seed's races."""
    mask = np.asarray(row.completion_mask, dtype=np.int64)
    positions = np.where(mask == 1, np.cumsum(mask) - 1, -1)
    return PrefillRequest(
        token_ids=(*row.prompt_tokens, *row.completion_tokens),
        start=len(row.prompt_tokens),
        temperature=temperature,
        seed=row.sampling_seed,
        positions=tuple(positions.tolist()),
    )


def _with_proofs(row: RolloutView, values: RowPrefill, hidden: Any) -> Computed:
    try:
        return Computed(values, verify_proofs(hidden, row.proofs, Thresholds()), "")
    except ProofError as error:
        return Computed(values, (), error.what)
    except PrimeError as error:  # our own states aren't finite: nothing can be compared
        return Computed(values, (), f"can't be compared: {error.what}")


def judged(
    chunk: ChunkVerdict, exponent_mismatches: int, mantissa_mean: float, mantissa_median: float
) -> bool:
    """Whether a chunk agrees within these thresholds."""
    thresholds = Thresholds(exponent_mismatches, mantissa_mean, mantissa_median)
    return thresholds.allow(
        chunk.exponent_mismatches, chunk.mantissa_mean, chunk.mantissa_median, chunk.points
    )
