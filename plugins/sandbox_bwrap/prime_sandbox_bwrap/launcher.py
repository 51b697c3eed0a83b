"""Starts a zygote through bubblewrap, and reads from its messages what a host lacks.

Used by the pool of `JailedSandbox`. Invariant: bubblewrap itself never runs as root, because the
kernel counts no processes of that user.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from prime_core.api import IsolationLevel, Missing, SandboxError
from prime_core.api.jails import Launched, Started, bpf_program
from prime_core.api.jails.launching import (
    ENVIRONMENT,
    DropsRoot,
    explain,
    python_variables,
    start_process,
    zygote_command,
)

INSIDE_USER = "65534"  # nobody

# A message of bubblewrap, and what to do about it.
MESSAGES: tuple[tuple[str, str, str, str], ...] = (
    (
        r"[Nn]o permissions to creat\w* new namespace|Creating new namespace failed.*not permitted",
        "user_namespaces",
        "new namespaces are refused",
        "sysctl -w kernel.unprivileged_userns_clone=1, on Ubuntu also "
        "kernel.apparmor_restrict_unprivileged_userns=0 or an AppArmor profile for bwrap; start a "
        "container with --security-opt seccomp=unconfined --security-opt apparmor=unconfined",
    ),
    (
        r"Creating new namespace failed|[Nn]o space left on device",
        "user_namespaces",
        "there may be no more user namespaces",
        "sysctl -w user.max_user_namespaces=10000",
    ),
    (
        r"Unknown option",
        "bwrap",
        "this bubblewrap is too old",
        "install bubblewrap 0.8 or newer",
    ),
    (
        r"[Cc]an't mount|[Ff]ailed to (mount|make)|pivot_root",
        "mounts",
        "a mount in the jail's own namespace is refused",
        "in a container run it with --security-opt systempaths=unconfined --security-opt "
        "apparmor=unconfined; look at the folder that the message names",
    ),
)


def find_bwrap(variables: Mapping[str, str] = os.environ) -> Path | None:
    """$BWRAP, then PATH."""
    found = variables.get("BWRAP") or shutil.which("bwrap", path=variables.get("PATH"))
    return Path(found) if found else None


class BwrapLauncher(DropsRoot):
    """Launches by bubblewrap.

    Args:
        outer_user: the user and group outside, where this process is root.
    """

    name = "bwrap"
    level: IsolationLevel = "cgroups"
    pid_one = True

    def policy(self) -> str:
        """The command with its variable parts by name."""
        return " ".join(self._options("ROOT", 0, {}))

    def _options(self, root: str, tmp_bytes: int, packages: Mapping[int, Path]) -> list[str]:
        variables = {**ENVIRONMENT, **python_variables("")}
        return [
            *("--unshare-all", "--unshare-user", "--as-pid-1", "--die-with-parent"),
            *("--new-session", "--cap-drop", "ALL", "--hostname", "jail"),
            *("--uid", INSIDE_USER, "--gid", INSIDE_USER),
            *("--ro-bind", root, "/", "--dev-bind", "/dev/null", "/dev/null"),
            *(part for at, path in packages.items() for part in _package(at, path)),
            *("--perms", "1777", "--size", str(tmp_bytes), "--tmpfs", "/tmp"),  # noqa: S108
            *("--remount-ro", "/", "--chdir", "/tmp", "--clearenv"),  # noqa: S108
            *(part for name, value in variables.items() for part in ("--setenv", name, value)),
        ]

    def start(self, launched: Launched) -> Started:
        """Start one jail."""
        binary = find_bwrap()
        if binary is None:
            raise SandboxError(
                "there is no bwrap",
                where="sandbox bwrap",
                fix="install bubblewrap 0.8 or newer, e.g. apt-get install bubblewrap",
            )
        policy = os.memfd_create("policy", os.MFD_CLOEXEC)
        try:
            os.write(policy, bpf_program())
            os.lseek(policy, 0, os.SEEK_SET)
            command = [
                str(binary),
                *self._options(
                    str(launched.root.path), launched.tmp_bytes, dict(enumerate(launched.packages))
                ),
                *("--seccomp", str(policy), "--"),
                *zygote_command(launched.root.python, launched.control, pid_one=True),
            ]
            fds = (launched.control, policy)
            return Started(
                start_process(command, launched, "bwrap", pass_fds=fds, **self.as_user()), {}
            )
        finally:
            os.close(policy)

    def explain(self, log: str) -> list[Missing]:
        """What a jail that never got ready lacked."""
        return explain(log, MESSAGES, "bwrap")


def _package(at: int, path: Path) -> tuple[str, str, str]:
    return "--ro-bind", str(path), f"/packages/{at}"
