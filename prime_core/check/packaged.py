"""A distribution that isn't installed, for one command: built, unpacked, and run in a jail.

`prime-core score --package` uses it, so that what a check printed can be scored again as it was.
Invariant: what the command runs of the package runs in the isolation that the check has.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from prime_core.api import RunError
from prime_core.check.checking import taken_names
from prime_core.check.launching import Launcher
from prime_core.check.staging import stage


@dataclass(frozen=True, slots=True)
class Packaged:
    """What hosts of the distribution's environments are opened with.

    Attributes:
        python: behaves like this interpreter with the distribution installed, in a jail.
        block: plugins of other distributions that have the same names.
        names: of its plugins.
        cache_dir, log_dir: scratch folders; nothing else is writable inside.
    """

    python: Path
    block: tuple[str, ...]
    names: tuple[str, ...]
    cache_dir: Path
    log_dir: Path


@contextmanager
def packaged(target: str) -> Iterator[Packaged]:
    """Build a folder's wheel, or unpack a wheel, for as long as the block runs.

    Raises:
        RunError: the target means nothing, or no wheel can be built.
        SandboxError: no jailed process can be started.
    """
    scratch = Path(tempfile.mkdtemp(prefix="prime-package-"))
    try:
        launcher = Launcher(scratch, Path(sys.executable), [scratch / "site"])
        found = asyncio.run(stage(target, scratch, launcher))
        if found.build_error:
            raise RunError(
                f"no wheel: {found.build_error}",
                where=target,
                fix=f"see `prime-core check {target} --rule P06`",
            )
        if found.foreign_modules or found.in_the_way:
            raise RunError(
                "it would hide other modules",
                where=target,
                fix=f"see `prime-core check {target} --rule P07`",
            )
        yield Packaged(
            launcher.interpreter(),
            taken_names(found),
            tuple(entry.name for entry in found.entries),
            launcher.inside / "home" / ".cache" / "prime-core",
            scratch / "logs",
        )
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
