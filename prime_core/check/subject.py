"""What a rule looks at: a distribution, or one plugin of it in one configuration.

Made by `prime_core.check.checking`, handed to every rule. Invariant: a rule learns of running code
through `lab` alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_core.api import PrimeError
from prime_core.check.checks_file import CaseEntry
from prime_core.check.distribution import Distribution, Entry

if TYPE_CHECKING:
    from prime_core.check.lab import Lab

DISTRIBUTION = "distribution"


class Blocked(PrimeError):
    """A rule can't look: what it needs doesn't run, which another rule reports."""


@dataclass(frozen=True)
class Subject:
    """One thing under check.

    Attributes:
        distribution: its files.
        lab: runs what has to run.
        entry: the plugin; None where the subject is the distribution.
        case: how the plugin is configured; None for the distribution.
        number: which of the plugin's configurations, from 0.
        numbered: it has several, so that labels tell them apart.
    """

    distribution: Distribution
    lab: Lab
    entry: Entry | None = None
    case: CaseEntry | None = None
    number: int = 0
    numbered: bool = False

    @property
    def kind(self) -> str:
        """The plugin's kind; "distribution" for a distribution."""
        return self.entry.kind if self.entry else DISTRIBUTION

    @property
    def label(self) -> str:
        """For people: environment.arithmetic, environment.jsonl#2, or the distribution's name."""
        if self.entry is None:
            return self.distribution.name
        return f"{self.entry.label}#{self.number + 1}" if self.numbered else self.entry.label

    def key(self) -> str:
        """Tells subjects of one distribution apart, in the cache too."""
        return f"{self.kind}:{self.label}"
