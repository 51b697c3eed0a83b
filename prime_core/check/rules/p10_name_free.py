"""P10: no other installed distribution has a plugin of the same kind and name."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.staging import normalised
from prime_core.check.subject import Subject
from prime_core.hub import Hub


def examine(subject: Subject) -> Result:
    """Compare with the metadata of what is installed; nothing is imported."""
    found = subject.distribution
    own = normalised(found.name)
    labels = {entry.label for entry in found.entries}
    findings = [
        Finding(f"{record.label} is also provided by {record.distribution} {record.version}")
        for record in Hub.discover().records()
        if record.label in labels and normalised(record.distribution) != own
    ]
    return failed(*findings)


RULE = Rule(
    id="P10",
    name="name-free",
    title="No other installed distribution provides a plugin of the same kind and name",
    level="bronze",
    cost="static",
    why="A run config names plugins by kind and name; two of one name stop every run that means "
    "either.",
    fix="choose another name, or uninstall the other distribution",
    bad='"environment.arithmetic" = "prime_env_words"   # prime-env-arithmetic has it',
    good='"environment.words" = "prime_env_words"',
    examine=examine,
)
