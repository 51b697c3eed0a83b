"""What this machine lets a test do: namespaces, cgroups, other users, told by trying.

Tests of sandboxes skip with these reasons, and only with these.
"""

from __future__ import annotations

import functools
import os
import subprocess

from prime_core.api import IsolationLevel
from prime_core.api.jails import CgroupPlace, find_place


@functools.cache
def namespaces_refused() -> str | None:
    """Why a user, mount, pid and network namespace can't be made here, or None."""
    command = ["unshare", "--user", "--mount", "--pid", "--net", "--fork", "true"]
    ended = subprocess.run(command, capture_output=True, text=True)
    return None if ended.returncode == 0 else f"namespaces are refused: {ended.stderr.strip()}"


@functools.cache
def cgroups_refused() -> str | None:
    """Why memory can't be limited over several processes here, or None."""
    place = find_place()
    if isinstance(place, CgroupPlace):
        place.remove()
        return None
    return place.why


def reachable_level() -> IsolationLevel:
    """The level that a launcher with namespaces reaches here."""
    if namespaces_refused():
        return "none"
    return "namespaces" if cgroups_refused() else "cgroups"


def other_user_refused() -> str | None:
    """Why a test can't become another user, or None."""
    return None if os.geteuid() == 0 else "only root can become another user"
