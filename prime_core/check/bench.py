"""Scores of completions under check: one interface over environments and verifiers alone.

Made by `prime_core.check.lab`, used by rules that score. Invariant: a completion that was scored
before under the same variables isn't scored again, unless `fresh` asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from prime_core.api import Completion, Message, Score, Task
from prime_core.check.rule import Exploit
from prime_core.hosting.pool import HostPool
from prime_core.hosting.verifier_pool import VerifierPool

Item = tuple[int, str]


def completion_of(text: str, token_count: int | None = None) -> Completion:
    """A completion of one turn that the model ended itself; about four characters a token."""
    count = len(text) // 4 + 1 if token_count is None else token_count
    return Completion(text, (Message("assistant", text),), "stop", count)


class Scorer(Protocol):
    """Scores completions of tasks by index."""

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """Scores, in order; a verifier that fails gives the status error."""
        ...

    async def close(self) -> None:
        """End its processes."""
        ...


class EnvironmentScorer:
    """An environment in jailed hosts."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """By the environment's verifier."""
        return await self._pool.score(items)

    async def close(self) -> None:
        """End its processes."""
        await self._pool.close()


class VerifierScorer:
    """A verifier in jailed hosts, with tasks that the check made."""

    def __init__(self, pool: VerifierPool, tasks: Sequence[Task]) -> None:
        self._pool = pool
        self._tasks = tasks

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """By the verifier; values outside [0, 1] are errors, as in an environment's host."""
        found = await self._pool.verify([(self._tasks[index], said) for index, said in items])
        return [_in_range(each.score) for each in found]

    async def close(self) -> None:
        """End its processes."""
        await self._pool.close()


def _in_range(score: Score) -> Score:
    if score.value is None or 0.0 <= score.value <= 1.0:
        return score
    detail = f"the score {score.value} is outside [0, 1]"
    return Score(None, "error", evidence={"kind": "value", "detail": detail})


@dataclass(frozen=True, slots=True)
class Judged:
    """One scored completion."""

    index: int
    text: str
    score: Score

    @property
    def value(self) -> float:
        """The score's value; the lowest number where it has none, which never counts as paid."""
        return float("-inf") if self.score.value is None else self.score.value

    def exploit(self, task: str, recipe: str = "", also: tuple[int, ...] = ()) -> Exploit:
        """As evidence of a finding."""
        evidence = self.score.evidence
        detail = ": ".join(str(evidence[key]) for key in ("kind", "detail") if key in evidence)
        return Exploit(
            self.index, task, self.text, self.score.value, self.score.status, detail, recipe, also
        )


class Bench:
    """Scores with memory."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._known: dict[Item, Score] = {}
        self.asked = 0

    async def judge(self, items: Sequence[Item], *, fresh: bool = False) -> list[Judged]:
        """Score (task index, text), in order.

        Args:
            fresh: score all of them now, also those that were scored before.
        """
        if fresh:
            scores = await self._score(items)
            return [Judged(i, text, one) for (i, text), one in zip(items, scores, strict=True)]
        missing = list(dict.fromkeys(item for item in items if item not in self._known))
        found = await self._score(missing)
        self._known.update(zip(missing, found, strict=True))
        return [Judged(index, text, self._known[index, text]) for index, text in items]

    async def judge_completions(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """Score completions as they are, without memory."""
        self.asked += len(items)
        return await self._scorer.score(items)

    async def _score(self, items: Sequence[Item]) -> list[Score]:
        if not items:
            return []
        return await self.judge_completions([(i, completion_of(text)) for i, text in items])

    async def close(self) -> None:
        """End its processes."""
        await self._scorer.close()
