"""N02: locale, time zone and UTF-8 mode change nothing."""

from __future__ import annotations

from prime_core.check.repeating import LOCALE, under
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject


async def examine(subject: Subject) -> Result:
    """Tasks and scores in a process of another locale, zone and encoding."""
    return await under(subject, LOCALE)


RULE = Rule(
    id="N02",
    name="locale",
    title="Tasks and scores are the same in every locale and time zone",
    level="silver",
    cost="run",
    why="A date, a sort or a file read without an encoding differs from machine to machine.",
    fix='name the encoding and the zone: open(path, encoding="utf-8"), datetime.UTC',
    bad="today = time.localtime().tm_hour",
    good="moment = datetime.fromtimestamp(seconds, UTC)",
    kinds=("environment", "verifier"),
    examine=examine,
)
