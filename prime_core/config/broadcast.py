"""How new weights reach the workers: the run's own files, or a tree of relays.

Read through `prime_core.config.sections`; the supervisor starts what `mode = "tree"` names.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from prime_core.config.section import Section


class ShardcastSection(Section):
    """The way of policy versions from the trainer to the workers."""

    mode: Literal["local", "tree"] = Field(
        default="local",
        description="local: workers read the store; tree: an origin, relays and a client a worker",
    )
    relays: int = Field(default=2, ge=1, le=64, description="local relay processes of a tree")
    shard_bytes: int = Field(
        default=16 * 2**20, ge=1024, le=2**30, description="bytes of one shard in a tree"
    )
    connections: int = Field(
        default=3, ge=1, le=64, description="shards that one relay or client fetches at once"
    )
    keep: int | None = Field(
        default=None,
        ge=1,
        description="newest versions on a relay; 5, or max lag + 2 where that is more",
    )
    disk_gb: float | None = Field(
        default=None, gt=0, description="most that one relay's versions take, in GB"
    )
    deltas: bool = Field(
        default=False, description="send what changed since the last version: for slow links"
    )

    def kept_versions(self, max_lag: int) -> int:
        """How many versions a relay keeps: what steps may still need, and one that comes in."""
        return self.keep or max(5, max_lag + 2)
