"""What this machine lets a test do: namespaces, cgroups, other users, told by trying.

Tests of sandboxes skip with these reasons, and only with these.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from prime_core.api import IsolationLevel
from prime_core.api.jails import CgroupPlace, find_place, stage
from prime_core.api.jails.launching import python_variables

OTHER_USER = 65533  # no account needs to exist


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


def run_as_other_user(arguments: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with these arguments as an ordinary user, with this process's import path.

    The interpreter is the staged one, because ours often lies in a home that only root may enter.

    Args:
        arguments: of the interpreter.
        folder: a new folder that will be the user's; its parents are open to all.
    """
    folder.mkdir(mode=0o700)
    os.chown(folder, OTHER_USER, OTHER_USER)
    root = stage([Path(f"/var/tmp/prime-core-{os.geteuid()}")], other_user=True)  # noqa: S108
    return subprocess.run(
        [f"{root.path}{root.python}", *arguments],
        capture_output=True,
        text=True,
        user=OTHER_USER,
        group=OTHER_USER,
        extra_groups=[],
        env={
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "PATH": os.environ["PATH"],
            "PRIME_CORE_CACHE": f"/var/tmp/prime-core-{OTHER_USER}",  # noqa: S108 - kept for the next run
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": ":".join(path for path in sys.path if path.startswith("/")),
            **python_variables(str(root.path)),
        },
    )
