"""P03: there is a README, and it isn't a template's."""

from __future__ import annotations

import re

from prime_core.check.rule import Finding, Result, Rule, failed, passed
from prime_core.check.subject import Subject

LEAST = 120  # characters that say something
TEMPLATE = re.compile(
    r"(?im)^.*(\bTODO\b|\bFIXME\b|lorem ipsum|<your |\{\{ ?\w+ ?\}\}|describe your).*$"
)


def examine(subject: Subject) -> Result:
    """Look at its length and for words that templates leave."""
    found = subject.distribution
    declared = found.project.get("readme")
    path = declared if isinstance(declared, str) else "README.md"
    text = found.readme.strip()
    if len(text) < LEAST:
        return failed(Finding(f"the README has {len(text)} characters", path=path, line=1))
    left = TEMPLATE.search(text)
    if left is not None:
        line = text.count("\n", 0, left.start()) + 1
        return failed(
            Finding(f"the README still says {left[0].strip()[:80]!r}", path=path, line=line)
        )
    return passed(characters=str(len(text)))


RULE = Rule(
    id="P03",
    name="readme",
    title="There is a README, and it is more than a template",
    level="bronze",
    cost="static",
    why="What the tasks are, where they come from and how answers are judged stands nowhere else.",
    fix="say in the README what the tasks are, how they are judged, and show one of them",
    bad="# prime-env-words\n\nTODO: describe your environment",
    good="# prime-env-words\n\nSpell a word backwards. 10,000 English words, judged by letter.\n"
    "Example: `stone` wants `enots`. Words come from ... under CC0.",
    examine=examine,
)
