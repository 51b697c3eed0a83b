"""How a launcher is asked for a jail: what it gets, and what it gives back.

Implemented by each sandbox plugin; called by the pool. Invariant: the process that a launcher
starts is the zygote or an ancestor of it, and dies with us.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from prime_core.api.errors import SandboxError
from prime_core.api.jails.staging import StagedRoot
from prime_core.api.sandboxing import IsolationLevel, Missing

# What the zygote is started with. PYTHONHASHSEED, because a set's order must be the same at every
# judging (and -I would ignore it); one malloc arena, because each thread's reserves 64 MiB.
ENVIRONMENT: Mapping[str, str] = {
    "HOME": "/tmp",  # noqa: S108 - the jail's own
    "LANG": "C.UTF-8",
    "LC_ALL": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "PATH": "/py/bin",
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "TMPDIR": "/tmp",  # noqa: S108
}


STAMP = re.compile(r"^(\[[^\]]*\])+ ")  # level, time and process before a launcher's message


def zygote_command(python: str, control: int, *, pid_one: bool) -> list[str]:
    """The command that runs the zygote of a staged root, with the channel's descriptor."""
    code = f"import prime_zygote; prime_zygote.main({pid_one}, {control})"
    return [python, "-P", "-s", "-S", "-B", "-c", code]


def python_variables(root: str) -> dict[str, str]:
    """What a staged interpreter needs to find itself below `root`."""
    return {"PYTHONHOME": f"{root}/py", "LD_LIBRARY_PATH": f"{root}/py/lib"}


@dataclass(frozen=True, slots=True)
class Launched:
    """What a launcher is to start.

    Attributes:
        root: the staged root.
        control: descriptor that has to arrive inside under the same number.
        log: descriptor that takes the launcher's own messages, and the zygote's until it's ready.
        tmp_bytes: size of the jail's /tmp.
        tmp_inodes: its number of files.
        packages: folders that are to be seen read-only at /packages/0, /packages/1...
    """

    root: StagedRoot
    control: int
    log: int
    tmp_bytes: int
    tmp_inodes: int
    packages: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Started:
    """A started launcher.

    Attributes:
        process: our child; its death ends the jail.
        settings: what the zygote is configured with beside the pool's own settings.
        folder: the jail's /tmp where it lies on the host; removed with the jail. None where the
            jail has a mount of its own.
    """

    process: subprocess.Popen[bytes]
    settings: Mapping[str, Any]
    folder: Path | None = None


class Launcher(Protocol):
    """Starts zygotes in whatever isolation it knows."""

    name: str
    level: IsolationLevel
    pid_one: bool

    @property
    def other_user(self) -> bool:
        """The jail's processes are of another user than ours."""
        ...

    def policy(self) -> str:
        """All that it decides of a jail, as text; part of the policy digest."""
        ...

    def start(self, launched: Launched) -> Started:
        """Start one.

        Raises:
            SandboxError: its program can't be started at all.
        """
        ...

    def explain(self, log: str) -> list[Missing]:
        """What a jail that never got ready lacked, from the launcher's messages."""
        ...


class DropsRoot:
    """A launcher whose process runs as another user where we are root.

    Args:
        outer_user: the user, and the group.
    """

    def __init__(self, outer_user: int) -> None:
        self._drop = outer_user if os.geteuid() == 0 else None

    @property
    def other_user(self) -> bool:
        """The jail's processes are of another user than ours."""
        return self._drop is not None

    @property
    def user(self) -> int:
        """The user of the jail's processes outside."""
        return os.geteuid() if self._drop is None else self._drop

    def as_user(self) -> dict[str, Any]:
        """Options of `subprocess.Popen`."""
        if self._drop is None:
            return {}
        return {"user": self._drop, "group": self._drop, "extra_groups": []}


def start_process(
    command: Sequence[str], launched: Launched, sandbox: str, **options: Any
) -> subprocess.Popen[bytes]:
    """Start a launcher that inherits the channel, with an empty environment and its own log.

    Args:
        options: more of `subprocess.Popen`, e.g. user.

    Raises:
        SandboxError: its program can't be started.
    """
    try:
        return subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=launched.log,
            stderr=launched.log,
            start_new_session=True,
            **{"env": {}, "pass_fds": (launched.control,), **options},
        )
    except OSError as error:
        raise SandboxError(
            f"{command[0]} can't be started: {error.strerror}",
            where=f"sandbox {sandbox}",
            fix="run `prime-core doctor sandbox`",
        ) from error


def explain(log: str, messages: Sequence[tuple[str, str, str, str]], sandbox: str) -> list[Missing]:
    """The first message that says something known; else the log's last line.

    Args:
        messages: pattern, name of the part that is missing, why, fix.
    """
    for pattern, part, why, fix in messages:
        found = re.search(f".*({pattern}).*", log)
        if found:
            said = STAMP.sub("", found[0].strip())[:300]
            return [Missing(part, f"{why}: {said}", fix)]
    lines = log.splitlines()
    return [
        Missing(
            "launch", f"{sandbox} says: {lines[-1][:300] if lines else 'nothing'}", "see its log"
        )
    ]
