"""`JailedSandbox`: the sandbox that all launchers share, with its small pool of warmed jails.

Plugins make one from their launcher. Invariant: a jail serves one program and is destroyed; a host
where jails can't be launched gets an error that names what is missing, never a weaker jail.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import socket
import tempfile
import threading
import weakref
from collections import deque
from concurrent.futures import Future
from pathlib import Path

from pydantic import Field

from prime_core.api.errors import SandboxError
from prime_core.api.jails.births import Births
from prime_core.api.jails.cgroups import Cgroup, CgroupPlace, find_place
from prime_core.api.jails.channel import Channel, JailLost
from prime_core.api.jails.launching import ENVIRONMENT, Launched, Launcher, Started
from prime_core.api.jails.probing import examine
from prime_core.api.jails.seccomp import kafel_policy
from prime_core.api.jails.session import JailSession
from prime_core.api.jails.staging import PACKAGE_PLACES, StagedRoot, stage
from prime_core.api.jails.zygotes import Zygote
from prime_core.api.sandboxing import Isolation, Limits, Missing, Program
from prime_core.api.specs import Context, Params

TRIES = 2  # launches that may fail before opening a jail does


class PoolParams(Params):
    """What every sandbox plugin takes."""

    warm: int = Field(2, ge=0, le=64, description="jails kept ready")
    tmp_mb: int = Field(16, ge=1, description="size of a jail's /tmp, MiB")
    tmp_files: int = Field(256, ge=16, description="files and folders in a jail's /tmp")
    packages: list[Path] = Field(
        default_factory=list,
        max_length=PACKAGE_PLACES,
        description="folders of packages that programs may import, seen read-only",
    )
    cgroups: bool = Field(True, description="limit memory and processes by cgroups where possible")
    preload: list[str] = Field(
        default_factory=lambda: ["collections", "functools", "math", "re"],
        description="modules that every jail imports before its first program",
    )
    outer_user: int = Field(
        65534, gt=0, description="user id outside, where this process is root; never root itself"
    )


class Unlaunchable(SandboxError):
    """No jail can be launched on this host; `missing` says what it lacks."""

    def __init__(self, name: str, missing: tuple[Missing, ...]) -> None:
        lines = [f"{each.name}: {each.why}; {each.fix}" for each in missing]
        super().__init__(
            "no jail can be launched here" + "".join(f"\n  - {line}" for line in lines),
            where=f"sandbox {name}",
            fix=missing[0].fix if missing else "run `prime-core doctor sandbox`",
        )
        self.missing = missing


class JailedSandbox:
    """A `Sandbox` over a launcher.

    Args:
        launcher: how a zygote is started.
        params: the plugin's parameters.
        context: tells where the interpreter may be staged.
    """

    def __init__(self, launcher: Launcher, params: PoolParams, context: Context) -> None:
        self._launcher = launcher
        self._params = params
        self._cache = context.cache_dir
        self._births = Births()
        self._warm: deque[Future[Zygote]] = deque()
        self._alive: dict[int, Zygote] = {}
        self._lock = threading.Lock()
        self._place: CgroupPlace | Missing | None = None
        self._root: StagedRoot | None = None
        self._isolation: Isolation | None = None
        self._closed = False
        atexit.register(_close_at_exit, weakref.ref(self), os.getpid())

    # --- the protocol -----------------------------------------------------------------------------

    def probe(self) -> Isolation:
        """What holds on this host, by a real launch; remembered."""
        if self._isolation is None:
            self._isolation = self._examine()
        return self._isolation

    def open(self, program: Program, limits: Limits) -> JailSession:
        """A jail with this program in it; see `prime_core.api.Sandbox`."""
        if program.language != "python":
            raise SandboxError(
                f"programs in {program.language!r} can't be run",
                where=f"sandbox {self._launcher.name}",
                fix="give programs in python",
            )
        isolation = self.probe()
        if isolation.level == "none":
            raise Unlaunchable(self._launcher.name, isolation.missing)
        return JailSession(program, limits, self._take, self._give_up)

    def processes(self) -> frozenset[int]:
        """Process ids of the launchers that are alive."""
        with self._lock:
            return frozenset(self._alive)

    def close(self) -> None:
        """Destroy every jail, the warmed ones too, and our cgroups."""
        with self._lock:
            self._closed = True
            self._warm.clear()
        self._births.close()  # whatever it was still starting is alive then
        with self._lock:
            zygotes = list(self._alive.values())
        for zygote in zygotes:
            self._give_up(zygote)
        if isinstance(self._place, CgroupPlace):
            self._place.remove()
        if self._root is not None:
            self._root.lease.close()

    # --- jails ------------------------------------------------------------------------------------

    def _take(self) -> Zygote:
        """A ready jail; starts others to replace it."""
        failures = 0
        while True:
            zygote, warmed = self._next()
            try:
                zygote.wait_ready()
            except JailLost as error:
                said = zygote.log_text() or str(error)
                self._give_up(zygote)
                failures += not warmed  # a warmed one may have been killed; others are there
                if failures == TRIES:
                    missing = self._launcher.explain(said)
                    raise Unlaunchable(self._launcher.name, tuple(missing)) from error
                continue
            except BaseException:
                self._give_up(zygote)
                raise
            self._refill()
            return zygote

    def _next(self) -> tuple[Zygote, bool]:
        """A started jail, and whether it was a warmed one."""
        with self._lock:
            if self._closed:
                raise SandboxError("it is closed", where=f"sandbox {self._launcher.name}")
            warmed = bool(self._warm)
            started = self._warm.popleft() if warmed else self._births.soon(self._launch)
        try:
            return started.result(), warmed
        except SandboxError:
            raise
        except BaseException:  # we were interrupted, not the launch: the next one may have it
            self._warm.append(started)
            raise

    def _refill(self) -> None:
        """Have the pool filled up, without waiting for it."""
        with self._lock:
            while not self._closed and len(self._warm) < self._params.warm:
                self._warm.append(self._births.soon(self._launch))

    def _launch(self) -> Zygote:
        """Start a jail, in the thread of births; it gets ready while we do something else."""
        cgroup = self._make_cgroup()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        log = os.memfd_create("log", os.MFD_CLOEXEC)
        try:
            launched = Launched(
                root=self._staged(),
                control=theirs.fileno(),
                log=log,
                tmp_bytes=self._params.tmp_mb << 20,
                tmp_inodes=self._params.tmp_files,
                packages=tuple(path.resolve() for path in self._params.packages),
            )
            started = self._start(launched, cgroup)
        except BaseException:
            ours.close()
            os.close(log)
            if cgroup is not None:
                cgroup.remove()
            raise
        finally:
            theirs.close()
        zygote = Zygote(started, Channel(ours), log, cgroup, self._launcher.pid_one)
        with self._lock:
            self._alive[started.process.pid] = zygote
        settings = {
            "preload": self._params.preload,
            "path": [f"/packages/{at}" for at in range(len(launched.packages))],
            **started.settings,
        }
        try:
            zygote.channel.send({"kind": "configure", "settings": settings})
        except JailLost:
            return zygote  # `wait_ready` finds out and reads its log
        return zygote

    def _start(self, launched: Launched, cgroup: Cgroup | None) -> Started:
        if cgroup is None:
            return self._launcher.start(launched)
        return self._births.inside(
            cgroup, self._make_cgroup, lambda: self._launcher.start(launched)
        )

    def _give_up(self, zygote: Zygote) -> None:
        with self._lock:
            if self._alive.pop(zygote.process.pid, None) is None:
                return
        zygote.kill()

    # --- what they need ---------------------------------------------------------------------------

    def _find_place(self) -> CgroupPlace | Missing:
        if self._place is None:
            off = Missing("memory_cgroup", "the parameter cgroups is false", "set cgroups = true")
            self._place = find_place() if self._params.cgroups else off
        return self._place

    def _make_cgroup(self) -> Cgroup | None:
        place = self._find_place()
        if isinstance(place, Missing):
            return None
        try:
            return place.make()
        except OSError as error:
            raise SandboxError(
                f"a cgroup can't be made any more: {error.filename}: {error.strerror}",
                where=f"sandbox {self._launcher.name}",
                fix="run `prime-core doctor sandbox`",
            ) from error

    def _staged(self) -> StagedRoot:
        if self._root is None:
            shared = Path(tempfile.gettempdir()) / f"prime-core-{os.geteuid()}"
            self._root = stage(
                [self._cache / "jails", Path(f"/var/tmp/prime-core-{os.geteuid()}"), shared],  # noqa: S108 - must outlive a reboot of nothing but us; owner and mode are checked
                other_user=self._launcher.other_user,
            )
        return self._root

    def _policy_digest(self) -> str:
        """Over everything that decides what a program may do and sees, but for its limits."""
        parts = [
            self._launcher.name,
            self._launcher.policy(),
            kafel_policy(),
            repr(sorted(ENVIRONMENT.items())),
            self._staged().digest,
            self._params.model_dump_json(exclude={"warm"}),
        ]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _examine(self) -> Isolation:
        try:
            zygote = self._take()
        except Unlaunchable as error:
            return Isolation(self._launcher.name, "none", "", (), error.missing)
        except SandboxError as error:
            missing = (Missing("launch", error.what, error.fix or ""),)
            return Isolation(self._launcher.name, "none", "", (), missing)
        try:
            place = self._find_place()
            found = examine(zygote, self._launcher, place)
        finally:
            self._give_up(zygote)
        return Isolation(
            self._launcher.name, found.level, self._policy_digest(), found.holds, found.missing
        )


def _close_at_exit(made: weakref.ref[JailedSandbox], owner: int) -> None:
    """For programs that end by an exception; a fork must not close what its parent uses."""
    sandbox = made()
    if sandbox is not None and os.getpid() == owner:
        sandbox.close()
