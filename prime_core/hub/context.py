"""What the engine offers to a plugin's factory: directories and whether it may fetch.

Made once per process and handed to `Hub.make`; implements `prime_core.api.Context`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api.errors import SandboxError
from prime_core.api.sandboxing import IsolationLevel, Sandbox

if TYPE_CHECKING:
    from prime_core.hub.sandboxes import Sandboxes


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """PRIME_CORE_CACHE, else prime-core under XDG_CACHE_HOME, else under ~/.cache."""
    chosen = environ.get("PRIME_CORE_CACHE")
    if chosen:
        return Path(chosen)
    base = environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "prime-core"


@dataclass(frozen=True, slots=True)
class RunContext:
    """The context of one process.

    Attributes:
        run_dir: the run's local directory, or None outside a run.
        cache_dir: where downloaded data is kept; not created before somebody writes there.
        offline: True where nothing may be fetched.
        sandboxes: what makes the sandbox; environment hosts have it, other processes don't.
    """

    run_dir: Path | None
    cache_dir: Path
    offline: bool = False
    sandboxes: Sandboxes | None = field(default=None, repr=False, compare=False)

    def sandbox(self, min_level: IsolationLevel = "namespaces") -> Sandbox:
        """The sandbox of this environment host; see `prime_core.api.Context`."""
        if self.sandboxes is None:
            raise SandboxError(
                "this process has no sandbox",
                fix="ask for it where environments and verifiers are made: in an environment host",
            )
        return self.sandboxes.get(min_level, self)

    @classmethod
    def from_environment(
        cls, run_dir: Path | None = None, environ: Mapping[str, str] = os.environ
    ) -> RunContext:
        """The context that PRIME_CORE_CACHE and PRIME_CORE_OFFLINE (1 or true) describe."""
        offline = environ.get("PRIME_CORE_OFFLINE", "").lower() in {"1", "true", "yes"}
        return cls(run_dir=run_dir, cache_dir=default_cache_dir(environ), offline=offline)
