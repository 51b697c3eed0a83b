"""Jailed child processes: the interpreter that hosts and probes of a check are started with.

`Lab` makes one `Launcher` a check. Invariant: a child ends in time, with all it started, can't
write what runs or is written outside of jails, and its isolation is printed before the first runs.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prime_core.api import SandboxError
from prime_core.hosting.variables import FIXED

Isolation = Literal["namespaces", "network", "limits"]

# What each level holds; the strongest that this host allows is used.
ISOLATIONS: Mapping[Isolation, str] = {
    "namespaces": "no network, file system read-only but for a scratch folder, own process ids",
    "network": "no network; files and processes of this user are within its reach",
    "limits": "resource limits and a scratch HOME only: check trusted packages, or allow user "
    "namespaces",
}
LIMITS: Mapping[str, int] = {
    "CORE": 0,
    "FSIZE": 512 << 20,
    "NOFILE": 1024,
    "NPROC": 1024,
    "CPU": 3600,
    "AS": 16 << 30,  # hosts set their own, lower one
}
PROCESSES = 512  # that a child and all it started may be at once
PROBE_LIMIT_S = 30.0
OUTPUT_TAIL = 4000  # bytes of a child's stderr that are kept for messages
# Places under HOME that a package under check has no business with.
SECRET_FOLDERS = (".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config/gcloud",
                  ".config/gh", ".config/prime-core")  # fmt: skip
SECRET_FILES = (".netrc", ".pypirc", ".npmrc", ".git-credentials")


@dataclass(frozen=True, slots=True)
class Ended:
    """How a jailed child ended.

    Attributes:
        code: exit code; negative for a signal.
        timed_out: it was killed at its limit.
        output: the end of what it printed, stdout and stderr together.
    """

    code: int
    timed_out: bool
    output: str

    @property
    def how(self) -> str:
        """For a message: how it ended, with the last line that it printed."""
        lines = self.output.strip().splitlines()
        last = f": {lines[-1].strip()}" if lines else ""
        if self.timed_out:
            return f"it didn't end in time{last}"
        if self.code < 0 or self.code > 128:
            number = -self.code if self.code < 0 else self.code - 128
            return f"it was killed by signal {number}{last}"
        return f"it ended with code {self.code}{last}"


class Launcher:
    """Writes launch scripts, one a set of variables, and runs commands through them.

    Args:
        scratch: a folder of the check's own; children may write to `inside`, below it, alone.
        python: the interpreter that they become.
        python_path: what PYTHONPATH is inside.
        processes: that a child and all it started may be at once.
    """

    def __init__(
        self,
        scratch: Path,
        python: Path,
        python_path: Sequence[Path] = (),
        processes: int = PROCESSES,
    ) -> None:
        self._processes = processes
        self._scratch = scratch
        self.inside = scratch / "inside"
        self._python = python
        self._python_path = os.pathsep.join(map(str, python_path))
        # Whatever we run, or write by its name, lies where no child can change it.
        for name in ("inside/home", "inside/tmp", "launch", "logs", "dev"):
            (scratch / name).mkdir(parents=True, exist_ok=True)
        self.isolation: Isolation = self._strongest()

    def _strongest(self) -> Isolation:
        last = ""
        for level in ISOLATIONS:
            script = self._write(f"probe-{level}", level, {})
            ended = self._run([str(script), "-I", "-S", "-c", "pass"], PROBE_LIMIT_S, os.environ)
            if ended.code == 0:
                return level
            last = ended.how
        raise SandboxError(
            f"no jailed process can be started: {last}",
            where=str(self._python),
            fix="read the message; the interpreter must be able to run a one-line program",
        )

    def interpreter(
        self, variables: Mapping[str, str] | None = None, python: Path | None = None
    ) -> Path:
        """An executable that behaves like the interpreter, in a jail.

        Args:
            variables: environment variables that win over those that hosts have.
            python: another interpreter, of a virtual environment that a jailed child made; it sees
                that environment alone.
        """
        given = dict(variables or {})
        if python is not None:
            given = {"PYTHONPATH": "", **given}
        name = "-".join(f"{key}={value}" for key, value in sorted(given.items())) or "plain"
        name = "".join(c if c.isalnum() else "_" for c in name)
        return self._write(name, self.isolation, given, python)

    def _write(
        self,
        name: str,
        level: Isolation,
        variables: Mapping[str, str],
        python: Path | None = None,
    ) -> Path:
        home = Path.home()
        inside = {
            "HOME": str(self.inside / "home"),
            "TMPDIR": str(self.inside / "tmp"),
            "XDG_CACHE_HOME": str(self.inside / "home" / ".cache"),
            "PRIME_CORE_CACHE": str(self.inside / "home" / ".cache" / "prime-core"),
            "PRIME_CORE_OFFLINE": "1",
            "HF_HUB_OFFLINE": "1",
            "PYTHONPATH": self._python_path,
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }
        settings = {
            "python": str(python or self._python),
            "level": level,
            "scratch": str(self.inside),
            # Hosts write their logs themselves; a mount can't be replaced by a link.
            "writable": [str(self.inside), str(self._scratch / "logs")],
            "devices": str(self._scratch / "dev"),
            "variables": inside,
            "limits": dict(LIMITS),
            "processes": self._processes,
            "hidden": [str(home / each) for each in SECRET_FOLDERS if (home / each).is_dir()],
            "hidden_files": [str(home / each) for each in SECRET_FILES if (home / each).is_file()],
        }
        folder = self._scratch / "launch"
        described = folder / f"{name}.json"
        described.write_text(json.dumps(settings), encoding="utf-8")
        script = folder / f"{name}.sh"
        jail = Path(__file__).with_name("jail.py")
        words = [sys.executable, "-I", "-S", "-B", str(jail), str(described)]
        script.write_text(
            f'#!/bin/sh\nexec {" ".join(map(shlex.quote, words))} "$@"\n', encoding="utf-8"
        )
        script.chmod(0o755)
        return script

    async def run(
        self,
        arguments: Sequence[str],
        limit_s: float,
        variables: Mapping[str, str] | None = None,
        python: Path | None = None,
    ) -> Ended:
        """Run the interpreter with these arguments in a jail; never raises for what it does."""
        command = [str(self.interpreter(variables, python)), *arguments]
        path = {"PATH": os.environ.get("PATH", os.defpath)}
        return await asyncio.to_thread(self._run, command, limit_s, {**FIXED, **path})

    def _run(self, command: Sequence[str], limit_s: float, variables: Mapping[str, str]) -> Ended:
        # Into a file, which has a limit, and not into our memory, which a child could fill.
        with tempfile.TemporaryFile(dir=self._scratch / "logs") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=dict(variables),
                start_new_session=True,
            )
            timed_out = False
            try:
                process.wait(limit_s)
            except subprocess.TimeoutExpired:
                timed_out = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # what it left in its group, too
            process.wait()
            output.seek(max(0, output.seek(0, os.SEEK_END) - OUTPUT_TAIL))
            said = output.read().decode("utf-8", "replace")
        return Ended(process.returncode, timed_out, said)
