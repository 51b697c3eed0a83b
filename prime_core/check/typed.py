"""Whether scores of hostile completions are typed: which sort of error, and how often.

Rules R01 to R04 share it: each looks at its own sorts of error. Invariant: the completions are
scored once, for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_core.check import pathological
from prime_core.check.bench import Judged
from prime_core.check.policies import Policy, shapes
from prime_core.check.rule import Finding, Result, failed
from prime_core.check.subject import Subject

TASKS = 2
SHOWN = 4
CRASHES = ("exception", "crash", "protocol")


async def hostile(subject: Subject) -> list[tuple[Policy, Judged, str]]:
    """(completion, how it was judged, the task's id) on the first and the last sampled task."""
    listing, views, bench = await subject.lab.sample(subject)
    policies = list(pathological.completions())
    for shape in shapes(listing, views):
        policies += pathological.wrapped(shape)
    chosen = [views[0], views[-1]][:TASKS] if len(views) > 1 else views[:1]
    pairs = [(policy, view) for view in chosen for policy in policies]
    judged = await bench.judge([(view.index, policy.text) for policy, view in pairs])
    return [(policy, one, view.id) for (policy, view), one in zip(pairs, judged, strict=True)]


async def without(subject: Subject, kinds: Sequence[str], said: str) -> Result:
    """A finding for each completion whose score is an error of one of these kinds."""
    found = await hostile(subject)
    findings: list[Finding] = []
    for policy, judged, task in found:
        kind = judged.score.evidence.get("kind") if judged.score.status == "error" else None
        if kind in kinds and len(findings) < SHOWN:
            findings.append(
                Finding(f"{policy.name} {said}", exploit=judged.exploit(task, policy.recipe))
            )
    return failed(*findings, completions=str(len(found)))
