"""Values of a run config that can't stand together; made by `rules` and `trust_rules`."""

from __future__ import annotations

from dataclasses import dataclass

from prime_core.config.locate import KeyPath


@dataclass(frozen=True, slots=True)
class Clash:
    """Values that can't stand together: their key paths, the place to show first."""

    keys: tuple[KeyPath, ...]
    what: str
    fix: str
