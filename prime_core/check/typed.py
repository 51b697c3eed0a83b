"""Whether scores of hostile completions are typed: which sort of error, and how often.

Rules R01 to R04 share it: each looks at its own sorts of error. Invariant: the completions are
scored once, for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.check import pathological
from prime_core.check.bench import Judged, loss
from prime_core.check.policies import Policy, constants, places
from prime_core.check.rule import Finding, Result, blocked, failed
from prime_core.check.subject import Blocked, Subject

TASKS = 2
SHOWN = 3
BATCH = 4  # completions between two looks at what they cost; each may take its limit, twice
COSTLY = 8  # what lost hosts may cost, as benches count it, before other completions are left
CRASHES = ("exception", "crash", "protocol")


@dataclass(frozen=True, slots=True)
class Hostile:
    """How hostile completions were judged.

    Attributes:
        judged: (completion, how it was judged, the task's id).
        left: completions that weren't scored, since too many before them hung or crashed.
    """

    judged: tuple[tuple[Policy, Judged, str], ...]
    left: int


async def hostile(subject: Subject) -> Hostile:
    """Constant and pathological completions on the first and the last sampled task."""
    listing, views, bench = await subject.lab.sample(subject)
    # Plain answers too: scorers have raised on a word where a number is wanted.
    policies = [*constants(), *pathological.completions()]
    for place in places(listing, views):
        policies += pathological.wrapped(place)
    chosen = [views[0], views[-1]][:TASKS] if len(views) > 1 else views[:1]
    pairs = [(policy, view) for view in chosen for policy in policies]
    found: list[tuple[Policy, Judged, str]] = []
    for at in range(0, len(pairs), BATCH):
        batch = pairs[at : at + BATCH]
        judged = await bench.judge([(view.index, policy.text) for policy, view in batch])
        found += [(policy, one, view.id) for (policy, view), one in zip(batch, judged, strict=True)]
        if sum(loss(one.score) for _, one, _ in found) >= COSTLY:
            break
    return Hostile(tuple(found), len(pairs) - len(found))


def kind(judged: Judged) -> str:
    """The sort of error; "" where there is a score."""
    return str(judged.score.evidence.get("kind", "")) if judged.score.status == "error" else ""


async def without(subject: Subject, kinds: Sequence[str], said: str) -> Result:
    """A finding for each completion whose score is an error of one of these kinds."""
    try:
        found = await hostile(subject)
    except Blocked:
        last = (await subject.lab.bench(subject)).last_loss
        if last.partition(":")[0] not in kinds:
            raise
        return failed(Finding(f"so many completions end its process that it was given up: {last}"))
    findings: list[Finding] = []
    for policy, judged, task in found.judged:
        if kind(judged) in kinds and len(findings) < SHOWN:
            findings.append(
                Finding(f"{policy.name} {said}", exploit=judged.exploit(task, policy.recipe))
            )
    if found.left and not findings:
        return blocked(f"hosts were lost too often, so that {found.left} weren't scored")
    return failed(*findings, completions=str(len(found.judged)))
