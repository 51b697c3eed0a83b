"""What a sandbox may leave on this host: processes, mounts, cgroups and folders of jails.

The contract of sandboxes looks before and after. Nothing here changes anything.
"""

from __future__ import annotations

import os
from pathlib import Path


def children_of(process: int) -> set[int]:
    """Children of all its threads."""
    files = Path(f"/proc/{process}/task").glob("*/children")
    return {int(word) for file in files for word in file.read_text().split()}


def leftovers() -> set[str]:
    """Mounts, our groups and folders of jails on this host."""
    mounts = Path("/proc/self/mounts").read_text().splitlines()
    places = [line.split()[1] for line in mounts if line.split()[2] in ("cgroup", "cgroup2")]
    mine = f"prime-core-{os.getpid()}"
    walked = (found for place in places for found in os.walk(place))  # groups come and go
    groups = {
        f"{path}/{name}" for path, names, _ in walked if path.endswith(mine) for name in names
    }
    folders = {str(found) for found in Path("/tmp").glob(f"prime-core-jail-{os.getpid()}-*")}  # noqa: S108
    return {*mounts, *groups, *folders}
