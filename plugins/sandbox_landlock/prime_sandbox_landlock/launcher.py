"""Starts a zygote as a plain process that confines each of its children by itself.

Used by the pool of `JailedSandbox`. Invariant: the program's code runs behind Landlock and seccomp
without new privileges, and never as root; what needs namespaces isn't claimed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path

from prime_core.api import IsolationLevel, Missing
from prime_core.api.jails import Launched, Started, bpf_program
from prime_core.api.jails.launching import (
    ENVIRONMENT,
    DropsRoot,
    explain,
    python_variables,
    start_process,
    zygote_command,
)

NOT_THERE = (
    "the kernel has no Landlock",
    "boot a kernel from 5.13 on with lsm=landlock,...; in a container use a runtime whose seccomp "
    "profile allows it",
)
MESSAGES: tuple[tuple[str, str, str, str], ...] = (
    (r"\[Errno \d+\] (Landlock|landlock)", "landlock", *NOT_THERE),
    (
        r"PR_SET_SECCOMP",
        "seccomp",
        "a filter can't be installed",
        "use a kernel with CONFIG_SECCOMP_FILTER",
    ),
)


PREFIX = "prime-core-jail-"
# Without a namespace the kernel counts all processes of the user, who may start others meanwhile;
# a fork bomb is bounded by this many more than it was allowed.
DRIFT = 128


class LandlockLauncher(DropsRoot):
    """Launches without namespaces.

    Args:
        outer_user: the user and group, where this process is root.
    """

    name = "landlock"
    level: IsolationLevel = "process"
    pid_one = False

    def policy(self) -> str:
        """What may be read, and the filter."""
        return f"landlock root+loader read tmp write {bpf_program().hex()}"

    def start(self, launched: Launched) -> Started:
        """Start one jail; its /tmp is a folder of the host's."""
        _sweep()
        folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-"))
        if self.other_user:
            os.chown(folder, self.user, self.user)
        root = launched.root.path
        environment = {**ENVIRONMENT, **python_variables(str(root)), "HOME": str(folder)}
        environment |= {"LOCPATH": f"{root}/usr/lib/locale"}
        environment |= {"TMPDIR": str(folder), "PATH": str(root / "py" / "bin")}
        command = zygote_command(str(root) + launched.root.python, launched.control, pid_one=False)
        loaders = [Path("/") / path.relative_to(root) for path in root.glob("lib*/**/ld-*")]
        settings = {
            "tmp": str(folder),
            "path": [str(path) for path in launched.packages],
            "processes_before": tasks_of(self.user) + DRIFT,
            "confine": {
                "read": [str(path) for path in (root, *loaders, *launched.packages)],
                "write": [str(folder), "/dev/null"],
                "filter": bpf_program(),
            },
        }
        try:
            process = start_process(
                command, launched, "landlock", env=environment, **self.as_user()
            )
        except BaseException:
            folder.rmdir()
            raise
        return Started(process, settings, folder)

    def explain(self, log: str) -> list[Missing]:
        """What a jail that never got ready lacked."""
        return explain(re.sub(r"^.*Errno 95.*$", "[Errno 95] Landlock", log), MESSAGES, "landlock")


def _sweep() -> None:
    """Remove the folders of jails whose process was killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*-*"):
        owner = folder.name.removeprefix(PREFIX).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(folder, ignore_errors=True)


def tasks_of(user: int) -> int:
    """Processes and threads of a user on this host."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == user:
                count += sum(1 for _ in (process / "task").iterdir())
        except OSError:
            continue  # it ended while we looked
    return count
