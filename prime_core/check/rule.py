"""What a rule is, and what it can find. Every module of `prime_core.check.rules` makes one `Rule`.

The runner calls them, the formats print what they say. Invariant: a finding says what was seen and
how to fix it, and a rule that couldn't look says so instead of passing.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, Union

if TYPE_CHECKING:
    from prime_core.check.subject import Subject

Level = Literal["bronze", "silver", "gold"]
Severity = Literal["error", "warning"]
Cost = Literal["static", "import", "run", "train"]
Status = Literal["passed", "failed", "warned", "exempt", "not applicable", "undecided"]

LEVELS: tuple[Level, ...] = ("bronze", "silver", "gold")
# Seconds of wall time that one rule may take; a rule that needs longer is undecided, never passed.
TIME_LIMIT_S: Mapping[Cost, float] = {
    "static": 20.0,
    "import": 120.0,
    "run": 300.0,
    "train": 7200.0,
}


@dataclass(frozen=True, slots=True)
class Exploit:
    """One completion that shows a finding, and the score it got.

    Attributes:
        index, task: of the task, for `prime-core score`.
        text: the completion, whole.
        recipe: a Python expression that gives `text`, where that is shorter than the text.
        value, status, detail: the score.
        also: indices of more tasks where the same text did the same; shrinking keeps them.
    """

    index: int
    task: str
    text: str
    value: float | None
    status: str
    detail: str = ""
    recipe: str = ""
    also: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        seen: what was seen, one sentence.
        fix: what to do, an imperative; "" takes the rule's own.
        path, line: the place in the distribution's source; "" and 0 where there is none.
        exploit: the completion that shows it.
        severity: "" takes the rule's own.
    """

    seen: str
    fix: str = ""
    path: str = ""
    line: int = 0
    exploit: Exploit | None = None
    severity: Severity | Literal[""] = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What a rule says of one subject.

    Attributes:
        findings: none: it passed.
        measures: numbers worth printing, as text: rates with intervals, seconds.
        not_applicable: why the rule has nothing to look at; "" where it looked.
        undecided: why it couldn't look although it should have; "" where it could.
    """

    findings: tuple[Finding, ...] = ()
    measures: Mapping[str, str] = field(default_factory=dict)
    not_applicable: str = ""
    undecided: str = ""


Examine: TypeAlias = Callable[["Subject"], Union[Result, Awaitable[Result]]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the ladder.

    Attributes:
        id: a letter of its family and two digits; stable for ever.
        name: what `--rule` takes too.
        title: what must hold, one sentence without a full stop.
        kinds: kinds of plugins that it looks at, one subject a plugin; () looks at a distribution.
        why: what went wrong in the world without it.
        fix: what to do, as an imperative.
        bad, good: the body of its page's examples.
        examine: looks at one subject.
    """

    id: str
    name: str
    title: str
    level: Level
    cost: Cost
    why: str
    fix: str
    bad: str
    good: str
    examine: Examine
    kinds: tuple[str, ...] = ()
    severity: Severity = "error"


def passed(**measures: str) -> Result:
    """Nothing found."""
    return Result(measures=measures)


def failed(*findings: Finding, **measures: str) -> Result:
    """These findings; a pass where there are none."""
    return Result(tuple(findings), measures)


def nothing_to_see(reason: str) -> Result:
    """The rule has nothing to look at here."""
    return Result(not_applicable=reason)


def blocked(reason: str) -> Result:
    """The rule couldn't look: something that another rule reports stands in its way."""
    return Result(undecided=reason)
