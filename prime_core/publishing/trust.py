"""Holds a run's plugins against `[plugins] publishers` and `min_level`.

Called when a run config is loaded, and again for what environment hosts made. A plugin passes if
the signed record that `prime-core install` left beside it says enough, and its Python files are
still the published ones, or if the config itself trusts it; prime-core's own plugins always pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from prime_core.api.errors import FormatError, IntegrityError, PluginError, RunError
from prime_core.hub.records import OWN_DISTRIBUTION, PluginRecord
from prime_core.publishing.installed import (
    Installed,
    editable,
    installed,
    publication,
    source_digest,
)
from prime_core.publishing.publication import LEVELS, Publication, Signed
from prime_core.publishing.wheel import tree_digest

if TYPE_CHECKING:
    from prime_core.config.sections import PluginsSection
    from prime_core.hub import Hub
    from prime_core.hub.selection import Selection


@dataclass(frozen=True, slots=True)
class Demand:
    """What a run demands of its plugins.

    Attributes:
        publishers: addresses whose word counts; empty demands nothing.
        min_level: the lowest level of the ladder.
        trusted: distributions whose files needn't be published, to the digests that these may
            have; "" is any.
    """

    publishers: frozenset[str]
    min_level: str
    trusted: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, section: PluginsSection) -> Demand:
        """As the run config says."""
        trusted: dict[str, frozenset[str]] = {}
        for entry in section.trusted:
            name, _, digest = entry.partition("@")
            name = canonicalize_name(name)
            trusted[name] = trusted.get(name, frozenset()) | {digest}
        return cls(frozenset(section.publishers), section.min_level, trusted)

    def __bool__(self) -> bool:
        return bool(self.publishers)


def missing(demand: Demand, one: Installed, found: Signed[Publication] | None) -> str:
    """Why an installed distribution doesn't meet a demand, as its predicate; "" where it does."""
    digests = demand.trusted.get(one.name)
    if digests is not None:
        if "" in digests:
            return ""
        if editable(one):
            return "is installed with `pip install -e`, so no digest can hold its files"
        if source_digest(one) in digests:
            return ""
        return "has other files than [plugins] trusted says; something changed them"
    if found is None:
        return "wasn't installed by `prime-core install`, so nobody's word stands for it"
    if found.signer not in demand.publishers:
        return f"is signed by {found.signer}, who isn't one of [plugins] publishers"
    level = found.value.check.level
    if LEVELS.index(level) < LEVELS.index(demand.min_level):
        return f"is published at level {level}, [plugins] min_level is {demand.min_level}"
    if source_digest(one) != found.value.source_sha256:
        return "has other files than the published ones; something changed them"
    return ""


def check(demand: Demand, label: str, one: Installed) -> Signed[Publication] | None:
    """Hold one plugin against the demand; its publication, where it has one.

    Args:
        label: KIND.NAME, for the message.

    Raises:
        PluginError: of phase found, with the reason.
    """
    if one.name == OWN_DISTRIBUTION:
        return None
    found, reason = _judged(demand, one)
    if reason:
        raise PluginError(
            f"{one.name} {one.version} {reason}",
            plugin=label,
            distribution=f"{one.name} {one.version}",
            phase="found",
            fix=f"prime-core install {one.name} --from URL with a publisher and level that the run "
            "config accepts, or, if you trust where it came from, add to [plugins]: "
            f'trusted = ["{_as_trusted(one)}"]',
        )
    return found


def _judged(demand: Demand, one: Installed) -> tuple[Signed[Publication] | None, str]:
    """(its publication, why it doesn't meet the demand or "")."""
    try:
        found = publication(one)
    except (FormatError, IntegrityError, RunError) as error:
        if demand and one.name not in demand.trusted:
            return None, f"has a publication that can't be used: {error.what}"
        found = None
    if not demand:
        return found, ""
    try:
        return found, missing(demand, one, found)
    except (FormatError, RunError) as error:
        return found, f"can't be held against its files: {error.what}"


def _as_trusted(one: Installed) -> str:
    """What `[plugins] trusted` would say: with its files' digest, where it has files of its own."""
    try:
        digest = source_digest(one)
    except (FormatError, RunError):
        return one.name
    return one.name if editable(one) or digest == tree_digest({}) else f"{one.name}@{digest}"


def of_record(record: PluginRecord) -> Installed:
    """Where a plugin of this interpreter is installed."""
    name = canonicalize_name(record.distribution)
    return Installed(name, record.version, Path(record.location))


def of_label(label: str, python: Path | None) -> Installed | None:
    """Where a plugin KIND.NAME is installed in an interpreter; None where nothing provides it."""
    return next((one for one in installed(python).values() if label in one.entries), None)


def find(hub: Hub, selection: Selection) -> Installed | None:
    """The distribution that a choice of the run config means; None where none is installed.

    Raises:
        PluginError: as `Hub.find`, for this interpreter.
        RunError: another interpreter can't be asked.
    """
    if selection.python is not None:
        return of_label(f"{selection.kind}.{selection.choice.use}", selection.python)
    choice = selection.choice
    return of_record(hub.find(selection.kind, choice.use, choice.version))


def check_all(
    demand: Demand, plugins: Sequence[tuple[str, Installed]]
) -> dict[str, Signed[Publication]]:
    """`check` of (label, distribution) pairs; publications by distribution.

    Raises:
        PluginError: the first that doesn't meet the demand.
    """
    found: dict[str, Signed[Publication]] = {}
    for label, one in plugins:
        record = check(demand, label, one)
        if record is not None:
            found[one.name] = record
    return found
