"""What a check ends with: one outcome per rule and subject, and what they add up to.

The runner makes it, formats print it. Invariant: the level reached counts neither a failed nor an
undecided rule as passed; exempt ones are counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from prime_core.check.rule import LEVELS, Finding, Level, Result, Rule, Status


@dataclass(frozen=True, slots=True)
class Outcome:
    """One rule's word on one subject.

    Attributes:
        subject: its label; environments' labels are what `prime-core score` takes.
        reason: why it is not applicable, undecided or exempt.
        seconds: wall time; 0 where it came from the cache.
        cached: it was looked up.
    """

    rule: Rule
    subject: str
    status: Status
    findings: tuple[Finding, ...] = ()
    measures: Mapping[str, str] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0
    cached: bool = False


@dataclass(frozen=True)
class Report:
    """A whole check.

    Attributes:
        name, version: of the distribution.
        target: as it was asked for.
        asked: the level that was asked for.
        claimed: what checks.toml claims; "" for nothing.
        isolation: what the children's jail held, in words.
        versions: of checker, prime-core and Python; what the cache's key is made of.
        environments: plugin label to the words that `prime-core score` needs behind its name.
        item_s: seconds that a completion could take.
        folder: where paths of findings begin, with its last slash; "" for the source itself.
    """

    name: str
    version: str
    target: str
    asked: Level
    claimed: str
    isolation: str
    versions: Mapping[str, str]
    outcomes: tuple[Outcome, ...]
    wheel_digest: str = ""
    environments: Mapping[str, Sequence[str]] = field(default_factory=dict)
    item_s: float = 10.0
    folder: str = ""

    @property
    def counts(self) -> Counter[str]:
        """Outcomes by status."""
        return Counter(each.status for each in self.outcomes)

    @property
    def reached(self) -> str:
        """The highest level all of whose rules ran and hold; "none" where bronze isn't."""
        best = "none"
        for level in LEVELS:
            own = [each for each in self.outcomes if each.rule.level == level]
            if not own or any(each.status in ("failed", "undecided") for each in own):
                break
            best = level
        return best

    @property
    def exit_code(self) -> int:
        """0: every rule holds; 1: one failed; 3: none failed, and one couldn't be decided."""
        if self.counts["failed"]:
            return 1
        return 3 if self.counts["undecided"] else 0


def outcome_of(rule: Rule, subject: str, result: Result, exempt: str, seconds: float) -> Outcome:
    """The outcome of a result, an exemption's reason applied."""
    if result.not_applicable:
        return Outcome(rule, subject, "not applicable", reason=result.not_applicable,
                       seconds=seconds)  # fmt: skip
    if result.undecided:
        status: Status = "exempt" if exempt else "undecided"
        return Outcome(rule, subject, status, reason=exempt or result.undecided, seconds=seconds)
    if not result.findings:
        return Outcome(rule, subject, "passed", (), result.measures, seconds=seconds)
    errors = any((each.severity or rule.severity) == "error" for each in result.findings)
    status = "exempt" if exempt else "failed" if errors else "warned"
    return Outcome(rule, subject, status, result.findings, result.measures, exempt, seconds)
