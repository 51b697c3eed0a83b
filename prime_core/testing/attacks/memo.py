"""A recomputer and an engine that remember, so that hundreds of files share their forward passes.

Used by the harness alone. What is remembered is a pure function of its key, so that verdicts are
those of a validator that computes everything anew.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from prime_core.api import (
    EngineCapabilities,
    Generation,
    GenerationRequest,
    InferenceEngine,
    PolicyFiles,
    Prefill,
    PrefillRequest,
    RolloutView,
)
from prime_core.api.check_facts import Rescored
from prime_core.validation.recompute import Planned, Recomputer

if TYPE_CHECKING:
    from prime_core.engines.planning import PlannedGroup


class MemoEngine:
    """An inference engine whose prefills are remembered until they are forgotten.

    Args:
        engine: the one that computes.
    """

    def __init__(self, engine: InferenceEngine) -> None:
        self._engine = engine
        self._digest = b""
        self._known: dict[tuple[bytes, PrefillRequest], Prefill] = {}
        self._kept: dict[tuple[bytes, PrefillRequest], Prefill] = {}

    @property
    def capabilities(self) -> EngineCapabilities:
        """The engine's own."""
        return self._engine.capabilities

    def load(self, policy: PolicyFiles) -> bytes:
        """Load a policy; what is known of others stays known."""
        self._digest = self._engine.load(policy)
        return self._digest

    def generate(self, requests: AsyncIterator[GenerationRequest]) -> AsyncIterator[Generation]:
        """Generate; nothing of it is remembered."""
        return self._engine.generate(requests)

    def cancel(self, group_id: str) -> None:
        """Pass it on."""
        self._engine.cancel(group_id)

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """Prefills of these requests; only new ones are computed, the short ones first."""
        keys = [(self._digest, request) for request in requests]
        new = list(dict.fromkeys(key for key in keys if key not in self._known))
        new.sort(key=lambda key: len(key[1].token_ids))
        found = self._engine.prefill([request for _, request in new]) if new else []
        self._known.update(zip(new, found, strict=True))
        return [self._known[key] for key in keys]

    def close(self) -> None:
        """The engine is closed by whoever opened it."""

    def keep(self) -> None:
        """Never forget what is remembered now."""
        self._kept = dict(self._known)

    def forget(self) -> None:
        """Drop what is remembered and isn't kept."""
        self._known = dict(self._kept)


@dataclass
class MemoRecomputer(Recomputer):
    """A recomputer that remembers plans and scores."""

    plans: dict[Any, list[PlannedGroup]] = field(default_factory=dict)
    scores: dict[Any, list[Rescored]] = field(default_factory=dict)
    kept: tuple[dict[Any, Any], dict[Any, Any]] = field(default_factory=lambda: ({}, {}))

    @classmethod
    def around(cls, recomputer: Recomputer, **changes: Any) -> MemoRecomputer:
        """One that works as another does, with some of its parts exchanged."""
        own = {each.name: getattr(recomputer, each.name) for each in fields(Recomputer)}
        return cls(**{**own, **changes, "loaded": None, "loads": 0})

    def plan(self, submission: Planned, node_class: str) -> list[PlannedGroup]:
        """As the original, once for each submission's name."""
        name = (submission.policy_version, submission.node, submission.step, submission.n)
        key = (*name, submission.groups, submission.group_size, node_class)
        if key not in self.plans:
            self.plans[key] = super().plan(submission, node_class)
        return self.plans[key]

    def rescore(
        self, group: PlannedGroup, rows: Sequence[RolloutView], step: int
    ) -> list[Rescored]:
        """As the original, once for each group with these words."""
        said = tuple(
            (
                *(tuple(row.completion_tokens), tuple(row.completion_mask), tuple(row.turn_ends)),
                *(row.finish_reason, row.score_status),
            )
            for row in rows
        )
        key = (group.group_id, group.environment, group.task, group.length_budget, step, said)
        if key not in self.scores:
            self.scores[key] = super().rescore(group, rows, step)
        return self.scores[key]

    def keep(self) -> None:
        """Never forget what is remembered now."""
        self.kept = (dict(self.plans), dict(self.scores))

    def forget(self) -> None:
        """Drop what is remembered and isn't kept."""
        self.plans, self.scores = (dict(each) for each in self.kept)
