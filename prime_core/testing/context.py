"""A context for authors' tests: a folder of the test's own, and no network.

Hand it to a factory where the engine would hand over its own.
"""

from __future__ import annotations

from pathlib import Path


class OfflineContext:
    """Everything under one folder, usually pytest's `tmp_path`; nothing may be fetched."""

    def __init__(self, folder: Path) -> None:
        self.cache_dir = folder / "cache"
        self.run_dir: Path | None = folder / "run"
        self.offline = True
