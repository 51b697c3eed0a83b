"""Chooses releases of an index: what fits, is signed by whom one trusts, and is no step back.

Called by `install`. An index that was tampered with may withhold; it can't make anything pass
that no trusted publisher signed, and what it withholds of an installed project is noticed.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.markers import default_environment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, RunError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.installed import Installed, publication
from prime_core.publishing.publication import LEVELS
from prime_core.publishing.source import Release, Source, read_release, releases
from prime_core.store.objects import ObjectMissingError

DEPTH = 50  # requirements of requirements; a longer chain is a trick


@dataclass(frozen=True, slots=True)
class Policy:
    """What may be installed.

    Attributes:
        publishers: addresses whose signature counts.
        min_level: the lowest level of the ladder.
        prereleases: whether 1.0rc1 will do where 0.9 is there.
    """

    publishers: frozenset[str]
    min_level: str = "none"
    prereleases: bool = False


def parse(text: str) -> Requirement:
    """NAME, NAME==V or any other specifier.

    Raises:
        FormatError: it's something else.
    """
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise FormatError(f"{text!r} is no requirement: {error}", fix="NAME or NAME==V") from error
    if requirement.url or requirement.marker:
        raise FormatError(f"{text!r} has a URL or marker", fix="give NAME or NAME==V")
    layout.project(requirement.name)
    return requirement


def resolve(
    source: Source, requirement: Requirement, policy: Policy, there: Mapping[str, Installed]
) -> dict[str, Release]:
    """The release of a requirement, and of what it needs that the index holds, by name.

    Raises:
        IntegrityError: signatures, publishers or levels aren't what the policy asks for, or the
            index offers less than is installed already.
        StoreError: nothing fits.
    """
    chosen: dict[str, Release] = {}
    extras: dict[str, set[str]] = {}  # whose requirements were looked at, by name
    projects = set(source.projects())
    todo = [(requirement, 0)]
    while todo:
        wanted, depth = todo.pop()
        name = layout.project(wanted.name)
        if depth > DEPTH:
            raise FormatError(f"requirements of {requirement.name} are nested too deep")
        if name in chosen:
            _agree(chosen[name], wanted)
            if wanted.extras <= extras[name]:
                continue
        else:
            chosen[name] = choose(source, wanted, policy, there.get(name))
        extras.setdefault(name, set()).update(wanted.extras)
        for line in chosen[name].record.value.requires:
            needed = _needed(line, wanted.extras)
            if needed is not None and _open(needed, projects, there):
                todo.append((needed, depth + 1))
    return chosen


def _needed(line: str, extras: set[str]) -> Requirement | None:
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        raise FormatError(f"the record requires {line!r}, which can't be read") from error
    marker = requirement.marker
    for extra in ("", *sorted(extras)):
        if marker is None or marker.evaluate({"extra": extra}):
            return requirement
    return None


def _open(needed: Requirement, projects: set[str], there: Mapping[str, Installed]) -> bool:
    """Whether the index has to provide it: it holds it, and nothing installed will do."""
    name = canonicalize_name(needed.name)
    found = there.get(name)
    will_do = found is not None and needed.specifier.contains(found.version, prereleases=True)
    return name in projects and not will_do


def _agree(release: Release, wanted: Requirement) -> None:
    if not wanted.specifier.contains(release.version, prereleases=True):
        said = release.record.value
        raise StoreError(
            f"{wanted} is needed, and {said.name} {said.version} was chosen for another",
            fix="ask for a version that both allow",
        )


def choose(source: Source, wanted: Requirement, policy: Policy, there: Installed | None) -> Release:
    """The newest release that fits and may be trusted; errors as `resolve`."""
    name = layout.project(wanted.name)
    pinned = _pinned(wanted)
    problems: list[PrimeError] = []
    found: list[Release] = []
    if pinned is None:
        found = releases(source, name, problems)
        if problems:  # leaving a broken one out would let whoever broke it choose an older one
            raise problems[0]
    else:
        with contextlib.suppress(ObjectMissingError):
            found = [read_release(source, name, layout.version_key(pinned))]
    if not found:
        raise StoreError(f"the index holds no {wanted}", where=source.url, fix=_known(source, name))
    fitting = [each for each in found if _fits(each, wanted, policy, exact=pinned is not None)]
    if not fitting:
        offered = ", ".join(_offer(each) for each in found)
        raise StoreError(
            f"no version fits {wanted} here; the index holds {offered}",
            where=source.url,
            fix="ask for one of them by NAME==V",
        )
    release = _trusted(fitting, policy, source.url)
    if there is not None:
        _no_step_back(release, there, pinned is not None, source.url)
    return release


def _known(source: Source, name: str) -> str:
    near = difflib.get_close_matches(name, source.projects(), n=1)
    offered = ", ".join(source.versions(name))
    return f"it holds {offered}" if offered else f"it holds {near[0]}" if near else "check the name"


def _pinned(wanted: Requirement) -> str | None:
    """The version of a NAME==V, else None."""
    specifiers = list(wanted.specifier)
    if len(specifiers) != 1 or specifiers[0].operator != "==" or "*" in specifiers[0].version:
        return None
    return specifiers[0].version


def _offer(release: Release) -> str:
    version = release.record.value.version
    return version if release.yanked is None else f"{version} (yanked)"


def _fits(release: Release, wanted: Requirement, policy: Policy, *, exact: bool) -> bool:
    said = release.record.value
    early = policy.prereleases or exact or bool(wanted.specifier.prereleases)
    if not wanted.specifier.contains(release.version, prereleases=early):
        return False
    if release.yanked is not None and not exact:
        return False
    try:
        return SpecifierSet(said.requires_python).contains(
            default_environment()["python_full_version"], prereleases=True
        )
    except InvalidSpecifier:
        return False


def _trusted(fitting: Sequence[Release], policy: Policy, where: str) -> Release:
    """The newest of a trusted publisher at a sufficient level."""
    known = [each for each in fitting if each.record.signer in policy.publishers]
    if not known:
        newest = fitting[0].record
        raise IntegrityError(
            f"{newest.value.name} {newest.value.version} is signed by {newest.signer}, whom you "
            "haven't named",
            where=where,
            fix=f"if you trust that publisher: --publisher {newest.signer}",
        )
    least = LEVELS.index(policy.min_level)
    enough = [each for each in known if LEVELS.index(each.record.value.check.level) >= least]
    if not enough:
        said = known[0].record.value
        raise IntegrityError(
            f"{said.name} {said.version} is published at level {said.check.level}, "
            f"you demand {policy.min_level}",
            where=where,
            fix="ask its publisher for a checked version, or lower --min-level",
        )
    return enough[0]


def _no_step_back(release: Release, there: Installed, exact: bool, where: str) -> None:
    """An index that was rolled back or rewritten doesn't pass unnoticed."""
    said = release.record.value
    try:
        older = release.version < Version(there.version)
    except InvalidVersion:
        return
    if older and not exact:
        raise IntegrityError(
            f"the index offers {said.name} {said.version}, installed is {there.version}: it may "
            "have been rolled back",
            where=where,
            fix=f"if you want the older one: {said.name}=={said.version}",
        )
    if there.version != said.version:
        return
    try:
        noted = publication(there)
    except (FormatError, IntegrityError, RunError):
        return  # what is installed can't vouch for anything; it's replaced
    if noted is not None and noted.sha256 != release.record.sha256:
        raise IntegrityError(
            f"the index holds another record of {said.name} {said.version} than the one that was "
            "installed, and versions never change",
            where=where,
            fix="ask its publisher which is right; uninstall it to take the index's",
        )
