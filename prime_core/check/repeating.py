"""The same work twice: scores and tasks compared between processes, orders and variables.

Rules of family N share it. Invariant: the completions compared are gold, wrong, empty and constant
ones, so that a difference shows in values that train.
"""

from __future__ import annotations

from collections.abc import Mapping

from prime_core.api import HostError
from prime_core.check.bench import Item, Judged
from prime_core.check.measures import Listing
from prime_core.check.rule import Finding, Result, failed, nothing_to_see
from prime_core.check.subject import Blocked, Subject

TASKS = 24
TEXTS = ("", "0", "yes", "The answer is 7.", "\\boxed{1}")
SHOWN = 3
HASH_SEED = {"with PYTHONHASHSEED=4242": {"PYTHONHASHSEED": "4242"}}  # plain hosts have 0
LOCALE = {
    "with LC_ALL=C, TZ=Asia/Kathmandu and PYTHONUTF8=0": {
        "LC_ALL": "C",
        "LANG": "C",
        "TZ": "Asia/Kathmandu",
        "PYTHONUTF8": "0",
        "PYTHONCOERCECLOCALE": "0",
    }
}
THREADS = {
    "in another process with four threads": dict.fromkeys(
        ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS"), "4"
    )
}
# Most packages are the same under all of these at once: one process then answers for every rule,
# and only where something differs does each variant get a process of its own.
TOGETHER: Mapping[str, str] = {
    name: value
    for variables in (*HASH_SEED.values(), *LOCALE.values(), *THREADS.values())
    for name, value in variables.items()
}


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
        variants: what to say of it, to environment variables; each a part of `TOGETHER`.
    """
    if not await deterministic(subject):
        return nothing_to_see("it declares itself not deterministic")
    items = await work(subject)
    findings: list[Finding] = []
    for when, variables in variants.items():
        if not await _changes(subject, items, TOGETHER, "under all variants"):
            continue
        findings += await _changes(subject, items, variables, when)
        if findings:
            break
    return failed(*findings[:SHOWN], completions=str(len(items)))


async def _changes(
    subject: Subject, items: list[Item], variables: Mapping[str, str], when: str
) -> list[Finding]:
    """What differs in hosts with these variables."""
    lab = subject.lab
    plain = await lab.ready(subject)
    first = await (await lab.bench(subject)).judge(items)
    try:
        bench = await lab.bench(subject, variables)
        sampled = [view.index for view in plain.sample if not view.error]
        other = await bench.listing(lab.limits.listed, sampled)
        findings = [] if other is None else listing_differs(plain, other, when)
        # Hosts of another task list score other tasks: what they say of these means nothing.
        return findings or differing(first, await bench.judge(items), when)
    except Blocked as error:
        return [Finding(f"it can't be made {when}: {error.what}")]
    except HostError as error:
        return [Finding(f"its hosts fail {when}: {error.what.splitlines()[0]}")]


def listing_differs(plain: Listing, other: Listing, when: str) -> list[Finding]:
    """What differs between two listings."""
    if other.digest != plain.digest:
        pairs = zip(plain.tasks, other.tasks, strict=False)
        at = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
        where = "their verification or metadata" if at is None else f"listed task {at}"
        return [Finding(f"the tasks are other ones {when}; {where} differs")]
    if other.info != plain.info:
        return [Finding(f"info is another one {when}: {other.info} instead of {plain.info}")]
    prompts = [view.prompt for view in plain.sample if not view.error]
    if [view.prompt for view in other.sample] != prompts:
        return [Finding(f"prompts are rendered differently {when}")]
    return []
