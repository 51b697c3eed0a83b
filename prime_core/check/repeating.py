"""The same work twice: scores and listings compared between processes, orders and variables.

Rules of family N share it. Invariant: the completions compared are gold, wrong, empty and constant
ones, so that a difference shows in values that train.
"""

from __future__ import annotations

from collections.abc import Mapping

from prime_core.check.bench import Bench, Item, Judged
from prime_core.check.measures import Listing
from prime_core.check.rule import Finding, Result, failed, nothing_to_see
from prime_core.check.subject import Subject

TASKS = 24
TEXTS = ("", "0", "yes", "The answer is 7.", "\\boxed{1}")
SHOWN = 3


async def work(subject: Subject) -> list[Item]:
    """Completions of sampled tasks."""
    _, views, _ = await subject.lab.sample(subject)
    items: list[Item] = []
    for view in views[:TASKS]:
        golds = [] if view.gold is None else [view.gold]
        items += [(view.index, text) for text in (*golds, *view.wrong[:1], *TEXTS)]
    return items


def differing(first: list[Judged], second: list[Judged], when: str) -> list[Finding]:
    """A finding for each completion with two scores."""
    found = []
    for one, other in zip(first, second, strict=True):
        if (one.score.value, one.score.status) != (other.score.value, other.score.status):
            found.append(
                Finding(
                    f"it gets {one.score.value} ({one.score.status}), and {other.score.value} "
                    f"({other.score.status}) {when}",
                    exploit=one.exploit(""),
                )
            )
    return found[:SHOWN]


async def deterministic(subject: Subject) -> bool:
    """The environment says that it is."""
    info = (await subject.lab.ready(subject)).info
    assert info is not None
    return info.deterministic


async def under(subject: Subject, variants: Mapping[str, Mapping[str, str]]) -> Result:
    """Tasks and scores under each set of variables, compared with those of plain hosts.

    Args:
        variants: what to say of it, to environment variables.
    """
    if not await deterministic(subject):
        return nothing_to_see("it declares itself not deterministic")
    lab = subject.lab
    plain = await lab.ready(subject)
    items = await work(subject)
    first = await (await lab.bench(subject)).judge(items)
    findings: list[Finding] = []
    for when, variables in variants.items():
        if subject.kind == "environment":
            findings += listing_differs(
                plain, await lab.listing(subject, variables=variables), when
            )
        if findings:
            break  # hosts of another task list refuse to start, or score other tasks
        bench: Bench = await lab.bench(subject, variables)
        findings += differing(first, await bench.judge(items), when)
    return failed(*findings[:SHOWN], completions=str(len(items)))


def listing_differs(plain: Listing, other: Listing, when: str) -> list[Finding]:
    """What differs between two listings."""
    if other.error:
        return [Finding(f"it can't be listed {when}: {other.error}")]
    if other.digest != plain.digest:
        pairs = zip(plain.tasks, other.tasks, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        where = "their verification or metadata" if at is None else f"listed task {at}"
        return [Finding(f"the tasks are other ones {when}; {where} differs")]
    if other.info != plain.info:
        return [Finding(f"info is another one {when}: {other.info} instead of {plain.info}")]
    if [view.prompt for view in other.sample] != [view.prompt for view in plain.sample]:
        return [Finding(f"prompts are rendered differently {when}")]
    return []
