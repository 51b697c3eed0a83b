"""How much of a batch one node and one provider may fill, so that nobody trains the run alone.

The intake fills batches by it, workers and the step counter expect batches by it; a run without
caps never asks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


@dataclass(frozen=True, slots=True)
class Caps:
    """Groups of one batch that one node and one provider may fill.

    Attributes:
        providers: provider by node name; a node that isn't named is its own.
    """

    node: int
    provider: int
    providers: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_config(cls, config: RunConfig) -> Caps | None:
        """The caps of a run config; None where both shares are 1."""
        swarm = config.swarm
        if swarm.max_node_share == 1.0 and swarm.max_provider_share == 1.0:
            return None
        groups = config.trainer.groups_per_step
        known = {node.label: node.provider for node in swarm.nodes}
        local = {f"worker-{index}": "local" for index in range(config.engine.workers)}
        return cls(
            node=max(1, int(swarm.max_node_share * groups)),
            provider=max(1, int(swarm.max_provider_share * groups)),
            providers=known or local,
        )

    def owner(self, node: str) -> str:
        """The provider of a node."""
        return self.providers.get(node, f"node {node}")


@dataclass(slots=True)
class Filled:
    """What nodes and providers have of one batch so far."""

    caps: Caps | None
    nodes: dict[str, float] = field(default_factory=dict)
    providers: dict[str, float] = field(default_factory=dict)

    def room(self, node: str) -> float:
        """Groups that this node may still add."""
        if self.caps is None:
            return float("inf")
        owner = self.caps.owner(node)
        return min(
            self.caps.node - self.nodes.get(node, 0.0),
            self.caps.provider - self.providers.get(owner, 0.0),
        )

    def add(self, node: str, groups: float) -> None:
        """Count groups of a node in."""
        if self.caps is not None:
            owner = self.caps.owner(node)
            self.nodes[node] = self.nodes.get(node, 0.0) + groups
            self.providers[owner] = self.providers.get(owner, 0.0) + groups
