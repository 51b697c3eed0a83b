"""Scores of completions under check, with memory.

Made by `prime_core.check.scorers`, used by rules that score. Invariant: a completion scored
before under the same variables isn't scored again, unless `fresh` asks for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from prime_core.api import Completion, Message, Score
from prime_core.check.measures import Listing
from prime_core.check.rule import Exploit
from prime_core.check.subject import Blocked

Item = tuple[int, str]

FIRST, LARGEST = 8, 256  # completions that are sent at once
LOSSES = {"timeout": 4, "crash": 1, "protocol": 1, "memory": 1}  # by kind of error
MOST_LOST = 24  # what lost hosts may cost, see `loss`, before a verifier isn't asked any more


def completion_of(text: str, token_count: int | None = None) -> Completion:
    """A completion of one turn that the model ended itself; about four characters a token."""
    count = len(text) // 4 + 1 if token_count is None else token_count
    return Completion(text, (Message("assistant", text),), "stop", count)


class Scorer(Protocol):
    """Scores completions of tasks by index."""

    async def score(self, items: Sequence[tuple[int, Completion]]) -> list[Score]:
        """Scores, in order; a verifier that fails gives the status error."""
        ...

    async def listing(self, most: int, sample: Sequence[int]) -> Listing | None:
        """The tasks as these processes have them; None where the check itself made them.

        Args:
            most: tasks that are listed, at most, evenly spread.
            sample: indices of the tasks that are rendered.
        """
        ...

    async def close(self) -> None:
        """End its processes."""
        ...


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


def loss(score: Score) -> int:
    """What an error cost: each of these kinds is tried twice, and a new host is started for it."""
    kind = str(score.evidence.get("kind", "")) if score.status == "error" else ""
    return LOSSES.get(kind, 0)


class Bench:
    """Scores with memory.

    Attributes:
        asked: completions that were scored, repeated ones counted.
        last_loss: the error that last cost a host, its kind first; "" where none did.
    """

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._known: dict[Item, Score] = {}
        self.asked = 0
        self._losses = 0
        self.last_loss = ""

    async def judge(self, items: Sequence[Item], *, fresh: bool = False) -> list[Judged]:
        """Score (task index, text), in order.

        Args:
            fresh: score all of them now, also those that were scored before.

        Raises:
            Blocked: the verifier hung or lost its process too often.
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

    async def listing(self, most: int, sample: Sequence[int]) -> Listing | None:
        """The tasks as these hosts have them; see `Scorer`."""
        return await self._scorer.listing(most, sample)

    async def _score(self, items: Sequence[Item]) -> list[Score]:
        """Scores in growing portions, so that a verifier that always hangs is soon given up."""
        found: list[Score] = []
        size = FIRST
        while len(found) < len(items):
            if self._losses >= MOST_LOST:
                raise Blocked(
                    f"the verifier hung or lost its process too often (R01, R02), last: "
                    f"{self.last_loss}; it isn't asked any more"
                )
            part = items[len(found) : len(found) + size]
            scores = await self.judge_completions([(i, completion_of(said)) for i, said in part])
            found += scores
            lost = [one for one in scores if loss(one)]
            size = FIRST if lost else min(LARGEST, 2 * size)
            for one in lost:
                self._losses += loss(one)
                self.last_loss = f"{one.evidence.get('kind')}: {one.evidence.get('detail')}"[:200]
        return found

    def forgive(self) -> None:
        """Ask again, whatever was lost so far."""
        self._losses = 0

    async def close(self) -> None:
        """End its processes."""
        await self._scorer.close()
