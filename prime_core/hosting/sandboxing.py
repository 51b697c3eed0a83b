"""The sandboxes of a host, from the first message; and the groups that a killed host leaves.

Used by hosts and, `remove_groups`, by their keepers, so that nothing heavy is imported here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from prime_core.hub import Hub
    from prime_core.hub.sandboxes import Sandboxes

GROUP = "prime-core-{}"  # as in `prime_core.api.jails.cgroups`, by process id
PATIENCE_S = 2.0  # a group is busy for some milliseconds after its last process was killed


def host_sandboxes(hub: Hub, request: Mapping[str, Any]) -> Sandboxes:
    """What makes the sandbox that `[hosting] sandbox` selects, when somebody asks."""
    from prime_core.config.sections import PluginChoice
    from prime_core.hub.sandboxes import Sandboxes

    chosen = request.get("sandbox")
    return Sandboxes(hub, None if chosen is None else PluginChoice.model_validate(chosen))


def remove_groups(process: int) -> None:
    """Remove the cgroups that a dead process made for its jails, wherever it may have made them."""
    deadline = time.monotonic() + PATIENCE_S
    for base in _bases():
        folder = base / GROUP.format(process)
        if not folder.is_dir():
            continue
        for group in [*(each for each in folder.iterdir() if each.is_dir()), folder]:
            while not _removed(group) and time.monotonic() < deadline:
                time.sleep(0.002)


def _removed(group: Path) -> bool:
    try:
        group.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _bases() -> list[Path]:
    """Our own group and those above it in every mounted hierarchy."""
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
        groups = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    paths = {Path(line.split(":", 2)[2].lstrip("/")) for line in groups}
    below = {above for path in paths for above in (path, *path.parents)}
    places = [fields[1] for fields in map(str.split, mounts) if fields[2] in ("cgroup", "cgroup2")]
    return [Path(place) / each for place in places for each in below]
