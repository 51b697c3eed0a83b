"""Whether task-blind policies earn more than the declared chance level.

The rules of family H and T02 to T03 call it, each with its own policies. Invariant: a policy is
accused on tasks on which it wasn't chosen, or on all there are, or against all that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from prime_core.api import EnvironmentInfo
from prime_core.check.bench import Bench, Judged
from prime_core.check.bounds import exceeds
from prime_core.check.listing import spread
from prime_core.check.measures import Listing, TaskView
from prime_core.check.policies import Policy
from prime_core.check.rule import Finding, Result, failed, nothing_to_see
from prime_core.check.subject import Subject

SCREENED = 24  # tasks on which every policy is tried
CONFIRMED = 6  # policies that are tried on the other tasks
SHOWN = 3  # findings of one rule

MakePolicies = Callable[[Listing, Sequence[TaskView]], Sequence[Policy]]


def share(value: float, info: EnvironmentInfo) -> float:
    """A score in [0, 1] of the declared range; no value counts as nothing."""
    low, high = info.score_range
    return min(1.0, max(0.0, (value - low) / (high - low)))


@dataclass(frozen=True, slots=True)
class Earned:
    """What a policy earned on some tasks."""

    policy: Policy
    judged: tuple[Judged, ...]
    total: float

    @property
    def mean(self) -> float:
        """Mean share of the range."""
        return self.total / len(self.judged)


async def earned(
    bench: Bench, info: EnvironmentInfo, policies: Sequence[Policy], indices: Sequence[int]
) -> list[Earned]:
    """Every policy on the same tasks."""
    items = [(index, policy.text) for policy in policies for index in indices]
    judged = await bench.judge(items)
    found = []
    for number, policy in enumerate(policies):
        own = tuple(judged[number * len(indices) : (number + 1) * len(indices)])
        found.append(Earned(policy, own, sum(share(each.value, info) for each in own)))
    return found


async def overpaid(subject: Subject, make: MakePolicies) -> Result:
    """The policies that earn more than chance; passes with the best one's mean as a measure."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    policies = make(listing, views)
    if not policies:
        return nothing_to_see("no such policy can be made from these tasks")
    chance = share(info.chance_level, info)
    indices = spread(listing.count, subject.lab.limits.tasks)
    whole = len(indices) == listing.count
    screened = [indices[at] for at in spread(len(indices), SCREENED)]
    first = await earned(bench, info, policies, screened)
    best = sorted(first, key=lambda each: -each.mean)
    chosen = [each.policy for each in best[:CONFIRMED] if each.total > 0]
    rest = indices if whole else [index for index in indices if index not in set(screened)]
    comparisons = len(chosen)
    if not rest:  # too few tasks for a second look: the first one counts, for all that were tried
        rest, comparisons = indices, len(policies)
    confirmed = await earned(bench, info, chosen, rest) if chosen else []
    guilty = [
        each for each in confirmed if exceeds(each.total, len(rest), chance, whole, comparisons)
    ]
    guilty.sort(key=lambda each: -each.mean)
    top = max((each.mean for each in confirmed), default=0.0)
    measures = {"policies": str(len(policies)), "best mean": f"{top:.4f} of chance {chance:.4f}"}
    return failed(*(_finding(each, listing, info) for each in guilty[:SHOWN]), **measures)


def _finding(one: Earned, listing: Listing, info: EnvironmentInfo) -> Finding:
    low, high = info.score_range
    paid = [each for each in one.judged if share(each.value, info) > 0]
    paid.sort(key=lambda each: -each.value)
    shown = paid[0]
    return Finding(
        f"the policy {one.policy.name} earns {low + one.mean * (high - low):.4f} on average over "
        f"{len(one.judged)} tasks; the declared chance level is {info.chance_level:.4f}",
        exploit=shown.exploit(
            _id(listing, shown.index),
            one.policy.recipe,
            tuple(each.index for each in paid[1:6] if each.value == shown.value),
        ),
    )


def _id(listing: Listing, index: int) -> str:
    return listing.tasks[index].id if listing.whole else ""


def top_paid(judged: Judged, info: EnvironmentInfo) -> bool:
    """The completion got the highest score."""
    return judged.value >= info.score_range[1]
