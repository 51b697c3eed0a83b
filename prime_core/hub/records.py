"""Plugins as their distributions' metadata lists them: no plugin is imported here.

`Hub.discover` calls `scan`. Entry points of group `prime_core` are named `<kind>.<name>`; the API
range is the distribution's own requirement on prime-core.
"""

from __future__ import annotations

import importlib.metadata
import re
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import prime_core
from prime_core.hub.kinds import KINDS

GROUP = "prime_core"
OWN_DISTRIBUTION = "prime-core"
UNREADABLE = "(unreadable)"
_MODULE = re.compile(r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$", re.ASCII)


@dataclass(frozen=True, slots=True)
class PluginRecord:
    """One entry point of group `prime_core`.

    Attributes:
        kind: part of the entry point's name before its first dot; may be unknown.
        name: the part after it.
        module: the module that the entry point names.
        distribution: name of the distribution, as its metadata spells it.
        version: the distribution's version.
        api_requirement: specifier of its requirement on prime-core; "" allows any version, None
            means that it states no requirement.
        summary: the distribution's one-line description.
        location: the directory that holds the distribution's metadata.
        shadowed: another distribution of the same name stands earlier on sys.path.
    """

    kind: str
    name: str
    module: str
    distribution: str
    version: str
    api_requirement: str | None
    summary: str = ""
    location: str = ""
    shadowed: bool = False

    @property
    def label(self) -> str:
        """The entry point's name, `<kind>.<name>`."""
        return f"{self.kind}.{self.name}" if self.kind else self.name

    @property
    def qualified(self) -> str:
        """`<kind>.<name>@<distribution>`: unique, and what `[plugins] block` understands."""
        return f"{self.label}@{self.distribution}"


def scan() -> list[PluginRecord]:
    """Every entry point of the group in the installed distributions, sorted by kind and name."""
    records: dict[tuple[str, str, str], PluginRecord] = {}
    seen: dict[str, str] = {}
    for distribution in importlib.metadata.distributions():
        for record in _records_of(distribution):
            owner = canonicalize_name(record.distribution)
            first = seen.setdefault(owner, _first_location(record))
            key = (record.label, owner, record.location)
            records.setdefault(key, replace(record, shadowed=first != record.location))
    return sorted(records.values(), key=lambda each: (each.kind, each.name, each.qualified))


def _records_of(distribution: importlib.metadata.Distribution) -> list[PluginRecord]:
    """The records of one distribution; an unreadable entry_points.txt gives one that says so."""
    location = str(distribution.locate_file(""))
    try:
        entry_points = [entry for entry in distribution.entry_points if entry.group == GROUP]
    except (TypeError, ValueError):  # importlib.metadata on a line without "="
        entry_points = [importlib.metadata.EntryPoint(UNREADABLE, "", GROUP)]
    if not entry_points:
        return []
    metadata = distribution.metadata
    requirement = _api_requirement(distribution)
    records = []
    for entry in entry_points:
        kind, dot, name = entry.name.partition(".")
        if not dot:
            kind, name = "", entry.name
        records.append(
            PluginRecord(
                kind=kind,
                name=name,
                module=entry.value.strip(),
                distribution=metadata["Name"] or "(unnamed)",
                version=metadata["Version"] or "",
                api_requirement=requirement,
                summary=metadata["Summary"] or "",
                location=location,
            )
        )
    return records


def _first_location(record: PluginRecord) -> str:
    """Where the distribution that Python would import from lies: the first of its name."""
    try:
        first = importlib.metadata.distribution(record.distribution)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        return record.location
    return str(first.locate_file(""))


def _api_requirement(distribution: importlib.metadata.Distribution) -> str | None:
    """The specifiers of the distribution's requirements on prime-core that hold here, joined."""
    if canonicalize_name(distribution.metadata["Name"] or "") == OWN_DISTRIBUTION:
        return ""
    found: list[str] = []
    for text in distribution.requires or []:
        try:
            requirement = Requirement(text)
        except InvalidRequirement:
            continue  # pip refused it already; a broken requirement on us shows as no requirement
        if canonicalize_name(requirement.name) != OWN_DISTRIBUTION:
            continue
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            found.append(str(requirement.specifier))
    return ",".join(part for part in found if part) if found else None


def found_problem(record: PluginRecord) -> tuple[str, str] | None:
    """What metadata alone says against loading a plugin, and its fix; None where nothing.

    Duplicates and blocks depend on other records and are the hub's business.
    """
    owner = record.distribution
    if record.name == UNREADABLE:
        return (
            f"entry_points.txt of {owner} under {record.location} can't be read",
            f"reinstall it: pip install --force-reinstall {owner}",
        )
    if not record.kind:
        return (
            f"entry point {record.name!r} isn't named <kind>.<name>",
            f"rename it in {owner}, e.g. environment.{record.name}",
        )
    if record.kind not in KINDS:
        return (
            f"{record.kind!r} is not a kind of plugin that prime-core {prime_core.__version__} has",
            f"use one of {', '.join(KINDS)} in {owner}, or upgrade prime-core",
        )
    if not record.name:
        return ("its entry point has no name behind the dot", f"name it in {owner}")
    if not _MODULE.match(record.module):
        return (
            f"its entry point names {record.module!r}, which is not a module",
            f"let the entry point of {owner} name the module that holds the hooks",
        )
    if record.api_requirement is None:
        return (
            f"{owner} states no requirement on prime-core, so the API it is written for is unknown",
            f"add 'prime-core>={prime_core.__version__}' to the dependencies of {owner}",
        )
    if not SpecifierSet(record.api_requirement).contains(prime_core.__version__, prereleases=True):
        return (
            f"{owner} {record.version} needs prime-core {record.api_requirement}, "
            f"this is {prime_core.__version__}",
            f"install a version of {owner} that allows prime-core {prime_core.__version__}",
        )
    return None
