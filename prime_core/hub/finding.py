"""Why a name can't be resolved to one plugin: absent, blocked, provided twice, of a wrong version.

Builds the errors of `Hub.find`, from metadata alone; each says which command or config line helps.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from prime_core.api import PluginError
from prime_core.hub.records import PluginRecord
from prime_core.hub.refusal import refusal

if TYPE_CHECKING:
    from prime_core.hub.hub import Hub


def absent(hub: Hub, kind: str, name: str) -> PluginError:
    """No plugin of that name may be used: say whether it's blocked, misspelt or missing."""
    alike = [each for each in hub.records() if (each.kind, each.name) == (kind, name)]
    for record in alike:
        block = hub.blocked_by(record)
        if block is not None:
            return refusal(
                record,
                "found",
                f"it is blocked by {block!r}",
                fix=f"remove {block!r} from [plugins] block, or use another {kind}",
            )
    names = sorted({each.name for each in hub.records() if each.kind == kind and not each.shadowed})
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    installed = f"installed: {', '.join(names)}" if names else f"no {kind} is installed"
    advice = f"pip install the distribution that provides {kind}.{name}"
    fix = f"use {near[0]!r}, or {advice}" if near else advice
    return PluginError(
        f"no {kind} is called {name!r}; {installed}",
        plugin=f"{kind}.{name}",
        distribution=None,
        phase="found",
        fix=f"{fix} (`prime-core plugins list` shows what there is)",
    )


def duplicate(found: Sequence[PluginRecord]) -> PluginError:
    """Several distributions provide one name: names all of them, and how to keep each."""
    owners = [f"{each.distribution} {each.version}" for each in found]
    blocks = [
        "to use {}, add {} to [plugins] block".format(
            each.distribution,
            " and ".join(f'"{other.qualified}"' for other in found if other is not each),
        )
        for each in found
    ]
    return PluginError(
        f"it is provided by {' and by '.join(owners)}",
        plugin=found[0].label,
        distribution=" and ".join(each.distribution for each in found),
        phase="found",
        fix="; ".join(blocks),
    )


def check_version(record: PluginRecord, version: str) -> None:
    try:
        specifier = SpecifierSet(version)
    except InvalidSpecifier as error:
        raise refusal(
            record,
            "found",
            f"{version!r} is not a version specifier",
            fix='write one like ">=0.1,<1"',
        ) from error
    if not specifier.contains(record.version, prereleases=True):
        raise refusal(
            record,
            "found",
            f"the run config asks for version {version}, installed is {record.version}",
            fix=f"pip install '{canonicalize_name(record.distribution)}{version}'",
        )
