"""I02: importing costs less than two seconds of CPU."""

from __future__ import annotations

from prime_core.check.importing import observed
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

LIMIT_S = 2.0


async def examine(subject: Subject) -> Result:
    """CPU seconds, which a busy machine doesn't change much."""
    found = await observed(subject)
    seconds = {module: float(seen["cpu_s"]) for module, seen in found.modules.items()}
    findings = [
        Finding(f"importing {module} took {each:.1f} s of CPU, the limit is {LIMIT_S:g} s")
        for module, each in seconds.items()
        if each > LIMIT_S
    ]
    return failed(*findings, seconds=f"{max(seconds.values(), default=0.0):.2f}")


RULE = Rule(
    id="I02",
    name="import-time",
    title="Importing the module costs less than 2 s of CPU",
    level="bronze",
    cost="import",
    why="Every host of every worker pays it, and `prime-core plugins show` does.",
    fix="move heavy imports into the function that needs them, and data into the factory",
    bad="WORDS = [line.strip() for line in open(BIG_FILE)]   # at the top of the module",
    good="def make(params, context):\n    words = read_words(context.cache_dir)",
    examine=examine,
)
