"""What all judged completions say together; the one source of every report.

Made by `scoring`, `measuring` and `profiles` from a journal, in one pass. Invariant: it depends on
the results and their order alone, not on who found them or when, so it holds no time of day.
"""

from __future__ import annotations

import math
import statistics
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from prime_core.api.types import SCORE_STATUSES
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.passing import (
    Estimate,
    default_ks,
    estimate_mean,
    estimate_pass_at_k,
    pass_at_k,
)

BINS = 10  # of the histogram of values
EXAMPLES = 3  # completions shown of each kind
REASON = 160  # characters of an error's detail that make it a kind of its own


@dataclass(slots=True)
class TaskLine:
    """One task.

    Attributes:
        completions: judged ones; scored: those with a value; passes: those at the pass mark.
        total: sum of the values.
        tokens: the model's, over all completions; truncated: completions at the token limit.
    """

    index: int
    task: str
    completions: int = 0
    scored: int = 0
    passes: int = 0
    total: float = 0.0
    tokens: int = 0
    truncated: int = 0

    @property
    def mean(self) -> float | None:
        """The mean value; None where nothing was scored."""
        return self.total / self.scored if self.scored else None

    def to_json(self) -> dict[str, Any]:
        """A row of the table of tasks; pass@1 is None where nothing was scored."""
        found = {name: getattr(self, name) for name in self.__slots__ if name != "total"}
        rate = pass_at_k(self.scored, self.passes, 1) if self.scored else None
        return {**found, "mean": self.mean, "pass@1": rate}


@dataclass(frozen=True, slots=True)
class Lengths:
    """The model's tokens in a completion.

    Attributes:
        quantiles: of 0, 0.1, 0.5, 0.9 and 1.
        truncated: share at the token limit.
    """

    mean: float
    quantiles: tuple[int, ...]
    truncated: float


@dataclass(frozen=True, slots=True)
class BudgetFit:
    """How well completions keep to the tokens that the prompt asked for.

    Attributes:
        mean_error: mean distance in tokens.
        within_tenth: share within a tenth of the target.
    """

    target: int
    mean_length: float
    mean_error: float
    within_tenth: float


@dataclass(frozen=True, slots=True)
class Summary:
    """All numbers of a report.

    Attributes:
        pass_mark: the lowest value that passes.
        statuses: completions by status.
        errors: completions without a verdict, by what went wrong, the most frequent first.
        histogram: completions by value, (lowest value of the bin, count).
        tokens, prompt_tokens, cost: in all.
        left: requests that were given up, by reason.
    """

    completions: int
    pass_mark: float
    mean: Estimate
    passing: Mapping[int, Estimate]
    statuses: Mapping[str, int]
    errors: Sequence[tuple[str, int]]
    histogram: Sequence[tuple[float, int]]
    lengths: Lengths | None
    budget: BudgetFit | None
    tokens: int
    prompt_tokens: int
    cost: float
    left: Mapping[str, int]
    tasks: Sequence[TaskLine]
    examples: Mapping[str, Sequence[Judged]]

    def numbers(self) -> dict[str, Any]:
        """Everything but single tasks and examples, plain JSON."""
        return {
            "completions": self.completions,
            "tasks": len(self.tasks),
            "mean": asdict(self.mean),
            "pass_mark": self.pass_mark,
            "pass": {f"pass@{k}": asdict(one) for k, one in self.passing.items()},
            "statuses": dict(self.statuses),
            "errors": [{"what": what, "count": count} for what, count in self.errors],
            "histogram": [{"from": low, "count": count} for low, count in self.histogram],
            "lengths": None if self.lengths is None else asdict(self.lengths),
            "length_budget": None if self.budget is None else asdict(self.budget),
            "tokens": self.tokens,
            "prompt_tokens": self.prompt_tokens,
            "cost": self.cost,
            "given_up": dict(self.left),
        }


@dataclass(slots=True)
class _Tally:
    """Counts while the results pass by."""

    score_range: tuple[float, float]
    pass_mark: float
    tasks: dict[int, TaskLine] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    bins: list[int] = field(default_factory=lambda: [0] * BINS)
    lengths: array[int] = field(default_factory=lambda: array("q"))
    prompt_tokens: int = 0
    costs: array[float] = field(default_factory=lambda: array("d"))
    examples: dict[str, list[Judged]] = field(default_factory=dict)

    def add(self, one: Judged) -> None:
        line = self.tasks.setdefault(one.index, TaskLine(one.index, one.task))
        line.completions += 1
        line.tokens += one.tokens
        line.truncated += one.finish_reason == "length"
        self.statuses[one.score.status] += 1
        self.lengths.append(one.tokens)
        self.prompt_tokens += one.prompt_tokens
        if one.cost:
            self.costs.append(one.cost)
        value = one.score.value
        if value is None:
            self.errors[_reason(one)] += 1
        else:
            line.scored += 1
            line.total += value
            line.passes += value >= self.pass_mark
            self.bins[self._bin(value)] += 1
        shown = self.examples.setdefault(self._kind(one), [])
        if len(shown) < EXAMPLES:
            shown.append(one)

    def _bin(self, value: float) -> int:
        low, high = self.score_range
        share = (value - low) / (high - low) if high > low else 0.0
        return min(BINS - 1, max(0, int(share * BINS)))

    def _kind(self, one: Judged) -> str:
        if one.score.status != "scored":
            return one.score.status
        assert one.score.value is not None
        return "passed" if one.score.value >= self.pass_mark else "not passed"


def summarise(
    results: Iterable[Judged],
    score_range: tuple[float, float],
    *,
    ks: Sequence[int] = (),
    pass_mark: float | None = None,
    target: int | None = None,
    left: Mapping[str, int] | None = None,
) -> Summary:
    """The summary of results.

    Args:
        ks: of pass@k; by default 1, 2, 4, ... up to the median of a task's scored completions.
        pass_mark: by default the highest score.
        target: of the length budget.
        left: what was given up.
    """
    mark = score_range[1] if pass_mark is None else pass_mark
    tally = _Tally(score_range, mark)
    for one in results:
        tally.add(one)
    tasks = [tally.tasks[index] for index in sorted(tally.tasks)]
    counts = [(line.scored, line.passes) for line in tasks]
    usual = statistics.median_low(scored for scored, _ in counts) if counts else 1
    scored = sum(samples for samples, _ in counts)
    means = [line.mean for line in tasks if line.mean is not None]
    low, high = score_range
    return Summary(
        completions=len(tally.lengths),
        pass_mark=mark,
        mean=estimate_mean(means, scored, score_range),
        passing={k: estimate_pass_at_k(counts, k) for k in (ks or default_ks(usual))},
        statuses={name: tally.statuses[name] for name in SCORE_STATUSES},
        errors=sorted(tally.errors.items(), key=lambda item: (-item[1], item[0])),
        histogram=[(low + (high - low) * n / BINS, count) for n, count in enumerate(tally.bins)],
        lengths=_lengths(tally.lengths, sum(line.truncated for line in tasks)),
        budget=_fit(tally.lengths, target),
        tokens=sum(tally.lengths),
        prompt_tokens=tally.prompt_tokens,
        cost=math.fsum(tally.costs),
        left=dict(sorted((left or {}).items())),
        tasks=tasks,
        examples={name: tally.examples[name] for name in sorted(tally.examples)},
    )


def _reason(one: Judged) -> str:
    evidence = one.score.evidence
    if one.score.status == "abstained":
        return f"abstained: {evidence.get('reason') or evidence.get('rule') or ''}"[:REASON]
    kind, detail = evidence.get("kind") or "error", str(evidence.get("detail") or "")
    return f"{kind}: {detail.splitlines()[-1] if detail.strip() else ''}"[:REASON]


def _lengths(lengths: array[int], truncated: int) -> Lengths | None:
    """None where no completion has a length: a file may not say."""
    count = len(lengths)
    if not count or not any(lengths):
        return None
    ordered = sorted(lengths)
    quantiles = tuple(ordered[round(share * (count - 1))] for share in (0, 0.1, 0.5, 0.9, 1))
    return Lengths(sum(ordered) / count, quantiles, truncated / count)


def _fit(lengths: array[int], target: int | None) -> BudgetFit | None:
    if target is None or not lengths:
        return None
    off = [abs(length - target) for length in lengths]
    return BudgetFit(
        target=target,
        mean_length=sum(lengths) / len(lengths),
        mean_error=sum(off) / len(off),
        within_tenth=sum(10 * distance <= target for distance in off) / len(off),
    )
