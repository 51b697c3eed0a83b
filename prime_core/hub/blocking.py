"""Entries of `[plugins] block`: which plugins they keep out.

Read by the hub before anything is imported, so a blocked plugin's code never runs.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass

from packaging.utils import canonicalize_name

from prime_core.api import PluginError
from prime_core.hub.kinds import KINDS
from prime_core.hub.records import PluginRecord


@dataclass(frozen=True, slots=True)
class Block:
    """One entry: `KIND.NAME`, `KIND.NAME@DISTRIBUTION` or `DISTRIBUTION`.

    Attributes:
        text: the entry as written.
        label: KIND.NAME, or "" where the entry names a whole distribution.
        distribution: normalised name, or "" where any distribution is meant.
    """

    text: str
    label: str
    distribution: str

    @classmethod
    def parse(cls, text: str) -> Block:
        """Read an entry; what stands before the first dot decides whether it's a KIND.NAME.

        Raises:
            PluginError: `X.NAME@DISTRIBUTION` where X is not a kind, or an empty entry.
        """
        label, at, distribution = text.strip().partition("@")
        kind, dot, name = label.partition(".")
        if dot and name and kind in KINDS and (distribution or not at):
            return cls(text, label, canonicalize_name(distribution) if at else "")
        if at or not label:
            near = difflib.get_close_matches(kind, KINDS, n=1)
            raise PluginError(
                f"[plugins] block holds {text!r}, which names no plugin",
                plugin=label or "(none)",
                distribution=distribution or None,
                phase="found",
                fix=f"write KIND.NAME@DISTRIBUTION with {near[0] if near else 'KIND'} one of "
                f"{', '.join(KINDS)}"
                if at
                else "remove the empty entry",
            )
        return cls(text, "", canonicalize_name(label))

    def matches(self, record: PluginRecord) -> bool:
        """Whether this entry keeps the plugin out."""
        if self.label and self.label != record.label:
            return False
        return not self.distribution or self.distribution == canonicalize_name(record.distribution)
