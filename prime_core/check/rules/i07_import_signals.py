"""I07: importing installs neither signal handlers nor exit handlers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_core.check.importing import each_module
from prime_core.check.rule import Result, Rule
from prime_core.check.subject import Subject

WATCHED = ("signal handlers", "exit handlers")


def _judge(seen: Mapping[str, Any]) -> str:
    found = [each for each in WATCHED if each in seen["changed"]]
    # numpy, logging and concurrent.futures register exit handlers of their own when they load.
    foreign = {"numpy", "logging", "concurrent", "multiprocessing", "scipy", "sympy", "gmpy2"}
    if found == ["exit handlers"] and foreign & set(seen["modules"]):
        return ""
    return f"installs {' and '.join(found)}" if found else ""


async def examine(subject: Subject) -> Result:
    """Compare handlers before and after."""
    return await each_module(subject, _judge)


RULE = Rule(
    id="I07",
    name="import-signals",
    title="Importing the module installs no signal handler and no exit handler",
    level="bronze",
    cost="import",
    why="A widely used environment library takes SIGINT and SIGTERM when it's imported, so that a "
    "trainer no longer ends on Ctrl-C.",
    fix="remove the handler; a host is killed with all it started",
    bad="signal.signal(signal.SIGTERM, clean_up)",
    good="with TemporaryDirectory() as folder:   # cleans up where it's used",
    examine=examine,
)
