"""All rules there are, found in `prime_core.check.rules`.

The runner, the pages and `--explain` ask it. Invariant: ids are unique, and a module's name begins
with its rule's id.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from functools import cache

from prime_core.api import RunError
from prime_core.check import rules as package
from prime_core.check.rule import LEVELS, Level, Rule

# Families in the order in which they run: cheap and basic first.
FAMILIES = "PIDTHNRLKU"


@cache
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order in which they run."""
    found = []
    for module in pkgutil.iter_modules(package.__path__):
        rule: Rule = importlib.import_module(f"{package.__name__}.{module.name}").RULE
        assert module.name.startswith(f"{rule.id.lower()}_"), f"{module.name} holds {rule.id}"
        found.append(rule)
    assert len({rule.id for rule in found}) == len(found), "two rules have one id"
    return tuple(sorted(found, key=lambda rule: (FAMILIES.index(rule.id[0]), rule.id)))


def find(text: str) -> Rule:
    """The rule of an id or a name.

    Raises:
        RunError: there is none.
    """
    for rule in rules():
        if text.lower() in (rule.id.lower(), rule.name):
            return rule
    import difflib

    names = [name for rule in rules() for name in (rule.id, rule.name)]
    near = difflib.get_close_matches(text, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]}?" if near else ""
    raise RunError(f"no rule is called {text!r}{hint}", fix="see `prime-core check --explain list`")


def up_to(level: Level) -> list[Rule]:
    """The rules of a level and of those below it."""
    allowed = LEVELS[: LEVELS.index(level) + 1]
    return [rule for rule in rules() if rule.level in allowed]


def chosen(level: Level, names: Sequence[str]) -> list[Rule]:
    """The rules that a check runs: those named, or all up to a level.

    Raises:
        RunError: a name that no rule has.
    """
    if names:
        wanted = {find(name).id for name in names}
        return [rule for rule in rules() if rule.id in wanted]
    return up_to(level)
