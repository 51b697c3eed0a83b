"""The observers that a run config selected, and how they're told what happens.

Held by the hub. What an observer raises is logged and counted, and never reaches the run.
"""

from __future__ import annotations

import logging

from prime_core.hub.loader import LoadedModule, Loader
from prime_core.hub.records import PluginRecord

logger = logging.getLogger("prime_core.hub")


class Observers:
    """Loaded observers, in the order of the run config."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._loaded: dict[str, tuple[PluginRecord, LoadedModule]] = {}
        self.failures: dict[str, int] = {}

    def add(self, record: PluginRecord, loaded: LoadedModule) -> None:
        """Let a loaded module observe; a second time changes nothing."""
        self._loaded.setdefault(loaded.module, (record, loaded))

    def notify(self, hook: str, arguments: dict[str, object]) -> int:
        """Call `hook` of every observer that implements it; returns how many failed."""
        failed = 0
        for record, loaded in self._loaded.values():
            if hook not in loaded.notifications:
                continue
            try:
                self._loader.call(loaded.plugin_name, hook, arguments)
            except (Exception, SystemExit):
                count = self.failures.get(record.distribution, 0) + 1
                self.failures[record.distribution] = count
                failed += 1
                logger.exception(
                    "observer %s of %s %s failed in %s (failure %d of it); the run goes on",
                    record.name,
                    record.distribution,
                    record.version,
                    hook,
                    count,
                )
        return failed
