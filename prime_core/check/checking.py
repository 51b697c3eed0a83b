"""A whole check: stage, run every rule on every subject it looks at, add it up.

`prime-core check` calls it. Invariant: a rule that raises, hangs or can't look is undecided, and
the others still run; nothing is left in the scratch folder.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from prime_core.check.cache import Cache, versions
from prime_core.check.distribution import Distribution
from prime_core.check.lab import Lab
from prime_core.check.launching import ISOLATIONS, Launcher
from prime_core.check.limits import Limits
from prime_core.check.outcome import Outcome, Report, outcome_of
from prime_core.check.registry import chosen
from prime_core.check.rule import TIME_LIMIT_S, Level, Result, Rule, blocked
from prime_core.check.shrink import shrinks, shrunk
from prime_core.check.staging import normalised, stage
from prime_core.check.subject import Blocked, Subject
from prime_core.hub import Hub


@dataclass(frozen=True)
class Order:
    """What is to be checked, and how.

    Attributes:
        target: a folder, a wheel, or the name of something installed.
        level: rules up to this one run; "" takes what checks.toml claims, else bronze.
        rules: ids or names; not empty: these alone run, whatever their level.
        shrink: look for the smallest completion that shows a finding.
        cache: where results are kept; None asks everything anew.
        python: the interpreter of the children; it needs prime-core and the requirements.
        progress: called before each rule with a line for people.
    """

    target: str
    level: Level | Literal[""] = ""
    rules: tuple[str, ...] = ()
    shrink: bool = False
    cache: Path | None = None
    limits: Limits = field(default_factory=Limits)
    python: Path = Path(sys.executable)
    progress: Callable[[str], None] = lambda line: None


def check(order: Order) -> Report:
    """Run the check; blocks.

    Raises:
        RunError: the target or a rule's name means nothing.
        SandboxError: no jailed process can be started.
    """
    chosen(order.level or "bronze", order.rules)  # a misspelt name ends it before anything is built
    scratch = Path(tempfile.mkdtemp(prefix="prime-check-"))
    try:
        return asyncio.run(_check(order, scratch))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


async def _check(order: Order, scratch: Path) -> Report:
    launcher = Launcher(scratch, order.python, [scratch / "site"])
    order.progress("building")
    distribution = await stage(order.target, scratch, launcher)
    level = order.level or distribution.checks.level or "bronze"
    rules = chosen(level, order.rules)
    lab = Lab(distribution, scratch, launcher, order.limits, taken_names(distribution))
    salt = json.dumps(asdict(order.limits)) + launcher.isolation + str(order.python)
    cache = Cache(order.cache, distribution, salt)
    clock = Clock(order.limits.total_s)
    try:
        looked = [(rule, each) for rule in rules for each in subjects(rule, distribution, lab)]
        outcomes = [await _outcome(order, rule, subject, cache, clock) for rule, subject in looked]
        if order.shrink:
            outcomes = [
                await _smaller(order, outcome, subject, cache, clock)
                for outcome, (_, subject) in zip(outcomes, looked, strict=True)
            ]
    finally:
        await lab.close()
    cache.save()
    return Report(
        name=distribution.name,
        version=distribution.version,
        target=order.target,
        asked=level,
        claimed=distribution.checks.level,
        isolation=f"{launcher.isolation}: {ISOLATIONS[launcher.isolation]}",
        versions=versions(),
        outcomes=tuple(outcomes),
        wheel_digest=distribution.wheel_digest,
        environments=_score_words(distribution),
        item_s=order.limits.item_s,
    )


def subjects(rule: Rule, distribution: Distribution, lab: Lab) -> Iterator[Subject]:
    """What a rule looks at: the distribution, or every case of every plugin of its kinds."""
    if not rule.kinds:
        yield Subject(distribution, lab)
        return
    for entry in distribution.entries:
        if entry.kind not in rule.kinds:
            continue
        cases = distribution.checks.for_plugin(entry.label)
        for number, case in enumerate(cases):
            yield Subject(distribution, lab, entry, case, number, len(cases) > 1)


def taken_names(distribution: Distribution) -> tuple[str, ...]:
    """Plugins of other installed distributions that have a name of this one's plugins."""
    labels = {entry.label for entry in distribution.entries}
    own = normalised(distribution.name)
    return tuple(
        record.qualified
        for record in Hub.discover().records()
        if record.label in labels and normalised(record.distribution) != own
    )


class Clock:
    """How long a check may still take.

    Attributes:
        total_s: seconds in all.
    """

    def __init__(self, total_s: float) -> None:
        self.total_s = total_s
        self._ends = time.monotonic() + total_s

    def left(self) -> float:
        """Seconds, negative when they are over."""
        return self._ends - time.monotonic()


async def _outcome(
    order: Order, rule: Rule, subject: Subject, cache: Cache, clock: Clock
) -> Outcome:
    exempt = subject.distribution.checks.exempt.get(rule.id, "")
    known = cache.get(rule, subject.key())
    if known is not None:
        found = outcome_of(rule, subject.label, known, exempt, 0.0)
        return replace(found, cached=True)
    order.progress(f"{rule.id} {rule.name}: {subject.label}")
    started = time.monotonic()
    result = await examine(rule, subject, clock)
    cache.put(rule, subject.key(), result)
    return outcome_of(rule, subject.label, result, exempt, time.monotonic() - started)


async def _smaller(
    order: Order, outcome: Outcome, subject: Subject, cache: Cache, clock: Clock
) -> Outcome:
    """The outcome with the smallest completions that show its findings."""
    if not shrinks(outcome.rule) or not any(finding.exploit for finding in outcome.findings):
        return outcome
    order.progress(f"{outcome.rule.id} {outcome.rule.name}: shrinking what {subject.label} said")
    result = Result(outcome.findings, outcome.measures)
    try:
        result = await asyncio.wait_for(shrunk(result, subject), max(0.0, clock.left()))
    except TimeoutError:
        return outcome
    cache.put(outcome.rule, subject.key(), result)
    return replace(outcome, findings=result.findings)


async def examine(rule: Rule, subject: Subject, clock: Clock) -> Result:
    """One rule on one subject, within its time and that of the check."""
    limit, left = TIME_LIMIT_S[rule.cost], clock.left()
    over = blocked(f"the check has taken {clock.total_s:g} s; ask for fewer rules with --rule")
    if left <= 0 and rule.cost != "static":
        return over
    try:
        found = rule.examine(subject)
        if inspect.isawaitable(found):
            found = await asyncio.wait_for(found, min(limit, left))
    except Blocked as error:
        return blocked(error.what)
    except TimeoutError:
        if left < limit:
            return over
        return blocked(f"it needed more than {limit:g} s; look at fewer tasks with --tasks")
    except Exception as error:  # noqa: BLE001 - one rule's mistake must not hide what the others see
        return blocked(f"the rule itself failed: {type(error).__name__}: {error}")
    assert isinstance(found, Result)
    return found


def _score_words(distribution: Distribution) -> dict[str, list[str]]:
    """Per subject label: what stands behind `prime-core score` for it."""
    words: dict[str, list[str]] = {}
    package = ["--package", distribution.target] if Path(distribution.target).exists() else []
    for entry in distribution.entries:
        cases = distribution.checks.for_plugin(entry.label)
        for number, case in enumerate(cases):
            label = f"{entry.label}#{number + 1}" if len(cases) > 1 else entry.label
            given = [f"{key}={json.dumps(value)}" for key, value in case.params.items()]
            options = [word for each in given for word in ("--with", each)]
            if case.verifier is not None:
                options += ["--verifier", case.verifier.use]
            words[label] = [entry.name, *options, *package]
    return words
