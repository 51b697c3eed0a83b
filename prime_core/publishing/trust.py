"""Holds a run's plugins against `[plugins] publishers` and `min_level`.

Called when a run config is loaded, and again for what environment hosts made. A plugin passes if
the signed record that `prime-core install` left beside it says enough, and its Python files are
still the published ones; prime-core's own plugins always pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.utils import canonicalize_name

from prime_core.api.errors import FormatError, IntegrityError, PluginError, RunError
from prime_core.hub.records import OWN_DISTRIBUTION, PluginRecord
from prime_core.publishing.installed import Installed, installed, publication, source_digest
from prime_core.publishing.publication import LEVELS, Publication, Signed

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
    """

    publishers: frozenset[str]
    min_level: str

    @classmethod
    def of(cls, section: PluginsSection) -> Demand:
        """As the run config says."""
        return cls(frozenset(section.publishers), section.min_level)

    def __bool__(self) -> bool:
        return bool(self.publishers)


def missing(demand: Demand, one: Installed, found: Signed[Publication] | None) -> str:
    """Why an installed distribution doesn't meet a demand, as its predicate; "" where it does."""
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
    try:
        found = publication(one)
        reason = missing(demand, one, found) if demand else ""
    except (FormatError, IntegrityError, RunError) as error:
        found, reason = (
            None,
            f"has a publication that can't be used: {error.what}" if demand else "",
        )
    if reason:
        raise PluginError(
            f"{one.name} {one.version} {reason}",
            plugin=label,
            distribution=f"{one.name} {one.version}",
            phase="found",
            fix=f"prime-core install {one.name} --from URL with a publisher and level that the run "
            "config accepts, or change [plugins]",
        )
    return found


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
