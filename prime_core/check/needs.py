"""What a distribution needs, and which names are taken, from the metadata of what is installed.

`clean_install` and `Distribution` ask it. Invariant: nothing is imported, and a requirement that
isn't met is said in words instead of being left out.
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name


@dataclass
class Needs:
    """Installed distributions by normalised name, and what is missing.

    Attributes:
        unmet: one sentence a requirement that what is installed doesn't meet.
    """

    found: dict[str, importlib.metadata.Distribution] = field(default_factory=dict)
    unmet: list[str] = field(default_factory=list)


def needs(requirements: Iterable[str], by: str) -> Needs:
    """All that these requirements lead to, whatever comes with an extra that they name included.

    Args:
        by: whose requirements they are, for messages.
    """
    made = Needs()
    seen: set[tuple[str, str]] = set()
    waiting = [(text, by, "") for text in requirements]
    while waiting:
        text, owner, extra = waiting.pop()
        requirement = _read(text)
        if requirement is None:
            made.unmet.append(f"{text!r}, which {owner} requires, isn't a requirement")
            continue
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": extra}):
            continue
        name = canonicalize_name(requirement.name)
        distribution = made.found.get(name) or _installed(name)
        if distribution is None:
            made.unmet.append(f"{requirement}, which {owner} requires, isn't installed")
            continue
        if not requirement.specifier.contains(distribution.version, prereleases=True):
            made.unmet.append(
                f"{owner} requires {requirement}, installed is {distribution.version}"
            )
        made.found[name] = distribution
        for wanted in {"", *requirement.extras}:
            if (name, wanted) not in seen:
                seen.add((name, wanted))
                waiting += [(each, name, wanted) for each in distribution.requires or []]
    return made


def _read(text: str) -> Requirement | None:
    try:
        return Requirement(text)
    except InvalidRequirement:
        return None


def _installed(name: str) -> importlib.metadata.Distribution | None:
    try:
        return importlib.metadata.distribution(name)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return None


def providers(labels: Iterable[str]) -> Iterator[str]:
    """Names of the installed distributions that have one of these plugins; `KIND.` is any of one.

    A run config selects them by name, so that nobody has to require them.
    """
    wanted = tuple(labels)
    for entry in importlib.metadata.entry_points(group="prime_core"):
        if entry.dist is not None and any(
            entry.name.startswith(label) if label.endswith(".") else entry.name == label
            for label in wanted
        ):
            yield entry.dist.name


def in_the_way(name: str, module: str) -> str:
    """What a distribution's module would hide where it's installed, as a noun; "" for nothing.

    Args:
        name: of the distribution, normalised.
        module: its one top-level module.
    """
    if module in sys.stdlib_module_names:
        return "Python's own"
    if name in needs(["prime-core"], "the check").found:
        return "prime-core's own, or of what it needs"
    if _installed(name) is None:
        paths = sysconfig.get_paths()
        if importlib.machinery.PathFinder.find_spec(module, [paths["purelib"], paths["platlib"]]):
            return "of another distribution that is installed"
    return ""
