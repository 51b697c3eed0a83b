"""The sections of a run that takes rollouts from others: checks, validators, nodes.

Read through `prime_core.config.sections`; they count where `[run] trust` is "validate".
"""

from __future__ import annotations

import re

from pydantic import Field, ValidationInfo, field_validator

from prime_core.config.section import NAME, PluginChoice, Refusal, Section

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")

# Cheapest first, and each before what relies on it: nothing is decoded for whoever didn't sign.
DEFAULT_CHECKS = (
    "identity",
    "schema",
    "policy_digest",
    "assignment",
    "bounds",
    "termination",
    "rewards",
    "logprobs",
    "sampling",
    "replay",
    "toploc",
)


def addresses(value: list[str]) -> list[str]:
    """Addresses in lower case; refuses what is none."""
    for each in value:
        if not _ADDRESS.fullmatch(each):
            raise Refusal(f"{each!r} is no address", "write 0x and 40 hexadecimal digits")
    return [each.lower() for each in value]


class CheckChoice(PluginChoice):
    """One sanity check of submitted rollouts; the order of the file is the order of asking."""


class ValidationSection(Section):
    """The validators of a run with trust = "validate"."""

    processes: int = Field(default=1, ge=0, description="local validator processes")
    addresses: list[str] = Field(
        default_factory=list, description="other validators whose signed verdicts count"
    )
    audit_share: float = Field(
        default=1.0, gt=0, le=1, description="share of an old node's files checked in full"
    )
    newcomer_files: int = Field(
        default=16, ge=0, description="clean whole files until a node's share begins to fall"
    )
    spot_groups: int = Field(
        default=1, ge=0, description="groups of every other file that costly checks look at"
    )
    max_rejected: int = Field(
        default=2,
        ge=1,
        description="rejected files of one step after which a node's others of it are refused",
    )
    decoy_every: int = Field(
        default=64, ge=0, description="one decoy in about this many files; 0: never"
    )
    statement_wait_s: float = Field(
        default=60.0, gt=0, description="seconds that a file may wait for its signed statement"
    )
    takeover_s: float = Field(
        default=60.0, gt=0, description="seconds until another validator takes a file over"
    )
    engine: PluginChoice | None = Field(
        default=None, description="engine that recomputes; default is the run's own"
    )

    @field_validator("addresses")
    @classmethod
    def _are_addresses(cls, value: list[str]) -> list[str]:
        return addresses(value)


class SwarmNode(Section):
    """One node that may submit."""

    name: str | None = Field(
        default=None,
        pattern=r"^[a-z0-9-]{1,64}$",
        description="name in submissions; default is the address",
    )
    address: str | None = Field(
        default=None, description="whose key signs; default is the local keys/NAME.key"
    )
    provider: str = Field(default="local", pattern=NAME, description="who owns the machine")
    node_class: str = Field(
        default="default", alias="class", description="decides its token limit, as engine.classes"
    )
    stake: int = Field(default=0, ge=0, description="what it loses when it is slashed, in tokens")

    @field_validator("address")
    @classmethod
    def _is_an_address(cls, value: str | None) -> str | None:
        return value if value is None else addresses([value])[0]

    @property
    def label(self) -> str:
        """The node's name in dispatches, submissions and verdicts."""
        return self.name or (self.address or "")


class SwarmSection(Section):
    """Who may submit, until a ledger says so; without nodes the local workers."""

    nodes: list[SwarmNode] = Field(default_factory=list, description="nodes that may submit")
    max_node_share: float = Field(
        default=1.0, gt=0, le=1, description="share of a batch that one node may fill"
    )
    max_provider_share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="share of a batch that one provider's nodes may fill",
    )

    @field_validator("nodes")
    @classmethod
    def _nodes_differ(cls, value: list[SwarmNode], info: ValidationInfo) -> list[SwarmNode]:
        seen: set[str] = set()
        for node in value:
            if not node.label:
                raise Refusal("a node has neither name nor address", "give it one of them")
            for name in {node.label, node.address or node.label}:
                if name in seen:
                    raise Refusal(f"{name} stands twice among the nodes", "remove one of them")
                seen.add(name)
        return value

    def find(self, name: str) -> SwarmNode | None:
        """The node of this name."""
        return next((node for node in self.nodes if node.label == name), None)
