"""What a check ran with: the installed distributions that a wheel's requirements lead to.

Called by `publish`; the digests stand in the signed record, and `install --locked` asks pip for
just these versions.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from prime_core.publishing.publication import Dependency
from prime_core.publishing.wheel import tree_digest


def closure(requires: Sequence[str]) -> tuple[Dependency, ...]:
    """The installed distributions that requirements name, and theirs, sorted by name.

    What isn't installed is left out: the check can't have run with it.
    """
    found: dict[str, Dependency] = {}
    seen: set[tuple[str, str]] = set()
    todo = [(text, "") for text in requires]
    while todo:
        text, extra = todo.pop()
        wanted = _wanted(text, extra)
        if wanted is None:
            continue
        name = canonicalize_name(wanted.name)
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for each in ("", *sorted(wanted.extras)):
            if (name, each) not in seen:
                seen.add((name, each))
                todo += [(line, each) for line in distribution.requires or ()]
        found[name] = Dependency(
            name=name, version=distribution.version, sha256=installed_digest(distribution)
        )
    return tuple(found[name] for name in sorted(found))


def _wanted(text: str, extra: str) -> Requirement | None:
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None  # pip refused it when it was installed; it leads nowhere
    marker = requirement.marker
    return requirement if marker is None or marker.evaluate({"extra": extra}) else None


def installed_digest(distribution: importlib.metadata.Distribution) -> str:
    """Over path and SHA-256 of the installed files that came from the wheel, as RECORD has them.

    Scripts, which name this machine's interpreter, and what pip adds are left out, so that the
    same wheel gives the same digest everywhere.
    """
    files = {}
    for file in distribution.files or ():
        if file.hash is None or file.hash.mode != "sha256" or ".." in file.parts:
            continue
        if file.parent.name.endswith(".dist-info") and file.name != "METADATA":
            continue
        files[str(file)] = file.hash.value
    return tree_digest(files)
