"""A context for authors' tests: a folder of the test's own, and no network.

Hand it to a factory where the engine would hand over its own.
"""

from __future__ import annotations

from pathlib import Path

from prime_core.api import IsolationLevel, Sandbox, SandboxError


class OfflineContext:
    """Everything under one folder, usually pytest's `tmp_path`; nothing may be fetched.

    Args:
        folder: holds the cache and the run.
        sandbox: what `sandbox` gives, whatever level is asked for; None where tests need none.
    """

    def __init__(self, folder: Path, sandbox: Sandbox | None = None) -> None:
        self.cache_dir = folder / "cache"
        self.run_dir: Path | None = folder / "run"
        self.offline = True
        self._sandbox = sandbox

    def sandbox(self, min_level: IsolationLevel = "namespaces") -> Sandbox:
        """The sandbox that the test gave."""
        if self._sandbox is None:
            raise SandboxError(
                "this test's context has no sandbox", fix="OfflineContext(folder, sandbox=...)"
            )
        return self._sandbox
