"""The sections of a run config, every field with a one-line help and its unit.

Loaded by `prime_core.config.load`; read by every process. A key whose feature doesn't exist is
refused as unknown; nothing here imports anything heavier than pydantic.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from prime_core.config.broadcast import ShardcastSection
from prime_core.config.engine import EngineSection, NodeClass
from prime_core.config.model import ModelSection, ModelShapeSection
from prime_core.config.section import NAME, FilePath, PluginChoice, Refusal, Section
from prime_core.config.training import (
    AdvantageSection,
    AsyncSection,
    LossSection,
    TrainerSection,
)
from prime_core.config.trust import (
    DEFAULT_CHECKS,
    CheckChoice,
    SwarmNode,
    SwarmSection,
    ValidationSection,
)

__all__ = [
    "DEFAULT_CHECKS",
    "NAME",
    "AdvantageSection",
    "AsyncSection",
    "CheckChoice",
    "EngineSection",
    "EnvironmentChoice",
    "EvalSection",
    "FilePath",
    "FiltersSection",
    "HostingSection",
    "LossSection",
    "ModelSection",
    "ModelShapeSection",
    "NodeClass",
    "PluginChoice",
    "PluginsSection",
    "Refusal",
    "RewardSection",
    "RunConfig",
    "RunSection",
    "Section",
    "ShardcastSection",
    "StoreSection",
    "SwarmNode",
    "SwarmSection",
    "TrainerSection",
    "ValidationSection",
]


class RunSection(Section):
    """What the run is called, where it lies, and from what it is seeded."""

    name: str = Field(default="run", pattern=NAME, description="name of the run")
    id: str | None = Field(default=None, pattern=NAME, description="run id; random unless set")
    dir: FilePath = Field(default=Path("runs/run"), description="local directory of the run")
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="seed of everything that isn't assigned"
    )
    trust: Literal["none", "validate"] = Field(
        default="none",
        description="none: the trainer checks schema and bounds; validate: takes verdicts",
    )


class EnvironmentChoice(PluginChoice):
    """One environment of the run."""

    name: str | None = Field(
        default=None, pattern=NAME, description="label in metrics; default is the plugin's name"
    )
    weight: float = Field(
        default=1.0, gt=0, description="share of the groups, relative to the others"
    )
    python: FilePath | None = Field(
        default=None, description="interpreter of its hosts; default is this one"
    )
    verifier: PluginChoice | None = Field(
        default=None, description="replaces the environment's verifier"
    )
    bad_golds: Literal["refuse", "drop"] = Field(
        default="refuse",
        description="unusable gold answers: refuse the run, or drop their tasks and say which",
    )

    @property
    def label(self) -> str:
        """The environment's name in rollouts and metrics."""
        return self.name or self.use


class RewardSection(PluginChoice):
    """The reward function."""

    use: str = Field(default="task", pattern=NAME, description="name of the reward function")


class FiltersSection(Section):
    """Data filters, applied in order."""

    offline: list[PluginChoice] = Field(default_factory=list, description="drop tasks before")
    online: list[PluginChoice] = Field(default_factory=list, description="drop finished groups")
    profiles: FilePath | None = Field(
        default=None, description="directory that `prime-core profile` wrote, for offline filters"
    )


class EvalSection(Section):
    """Held-out evaluation of policy versions."""

    every: int = Field(
        default=0, ge=0, description="rollout steps between evaluations; 0: first and last"
    )
    tasks: int = Field(default=256, gt=0, description="held-out tasks of one evaluation")
    environments: list[EnvironmentChoice] = Field(
        default_factory=list, description="environments with held-out tasks"
    )


class HostingSection(Section):
    """Environment hosts and their limits."""

    hosts: int = Field(default=1, ge=1, description="host processes per environment and worker")
    time_limit_s: float = Field(
        default=30.0, gt=0, description="seconds one call may take, then killed"
    )
    start_limit_s: float = Field(
        default=120.0, gt=0, description="seconds until a host has its environment open"
    )
    memory_mb: int = Field(default=2048, gt=0, description="address space of one host, MiB")
    batch: int = Field(default=64, gt=0, description="scores asked for in one message")
    sandbox: PluginChoice | None = Field(
        default=None,
        description="sandbox of untrusted programs; nsjail where one is needed and none is set",
    )


class StoreSection(Section):
    """Where the run's immutable objects live."""

    url: str | None = Field(default=None, description="fsspec URL; default is the run's directory")
    keep_policies: int = Field(
        default=8,
        ge=2,
        description="newest policy versions whose weights are kept, at least max lag + 2",
    )


class PluginsSection(Section):
    """Which plugins are kept out, which observers are let in, and who must have published them."""

    block: list[str] = Field(
        default_factory=list,
        description="plugins kept out: KIND.NAME, KIND.NAME@DISTRIBUTION or a distribution",
    )
    observers: list[str] = Field(default_factory=list, description="observer plugins to load")
    publishers: list[str] = Field(
        default_factory=list,
        description="addresses that must have published every plugin; empty: no demand",
    )
    min_level: Literal["none", "bronze", "silver", "gold"] = Field(
        default="none",
        validate_default=True,
        description="level of `prime-core check` that every plugin was published at",
    )

    trusted: list[str] = Field(
        default_factory=list,
        description="distributions that need no publisher: NAME or NAME@SHA256",
    )

    @field_validator("trusted")
    @classmethod
    def _trusted_are_distributions(cls, value: list[str], info: ValidationInfo) -> list[str]:
        for each in value:
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*(@[0-9a-f]{64})?", each):
                raise Refusal(f"{each!r} names no distribution", "write NAME or NAME@SHA256")
        if value and not info.data.get("publishers", [""]):
            raise Refusal(
                "trusted excepts from a demand that nothing makes: there are no publishers",
                'name whose word counts, publishers = ["0x..."], or remove trusted',
            )
        return value

    @field_validator("publishers")
    @classmethod
    def _publishers_are_addresses(cls, value: list[str]) -> list[str]:
        for each in value:
            if not re.fullmatch(r"0x[0-9a-fA-F]{40}", each):
                raise Refusal(f"{each!r} is no address", "write 0x and 40 hexadecimal digits")
        return [each.lower() for each in value]

    @field_validator("min_level")
    @classmethod
    def _somebody_vouches_for_the_level(cls, value: str, info: ValidationInfo) -> str:
        if value != "none" and not info.data.get("publishers", [""]):
            raise Refusal(
                f"min_level {value!r} is anybody's word without publishers",
                'name whose word counts: publishers = ["0x..."]',
            )
        return value


class RunConfig(Section):
    """A whole run config. Relative paths start at the directory that a command runs in."""

    run: RunSection = Field(default_factory=RunSection, description="name, directory, seed")
    model: ModelSection = Field(description="the model that version 0 is made from")
    engine: EngineSection = Field(
        default_factory=EngineSection, description="inference engine and sampling"
    )
    trainer: TrainerSection = Field(
        default_factory=TrainerSection, description="optimisation of a rollout step"
    )
    loss: LossSection = Field(
        default_factory=LossSection, description="policy loss and extra terms"
    )
    advantage: AdvantageSection = Field(
        default_factory=AdvantageSection, description="rewards to advantages"
    )
    async_: AsyncSection = Field(
        default_factory=AsyncSection, alias="async", description="allowed lags"
    )
    environments: list[EnvironmentChoice] = Field(
        min_length=1, description="environments that are trained on"
    )
    reward: RewardSection = Field(default_factory=RewardSection, description="reward function")
    length_budget: PluginChoice | None = Field(
        default=None, description="thinking-token target; no target unless set"
    )
    filters: FiltersSection = Field(default_factory=FiltersSection, description="data filters")
    checks: list[CheckChoice] = Field(
        default_factory=list, description="sanity checks in order; all the built-in ones unless set"
    )
    validation: ValidationSection = Field(
        default_factory=ValidationSection, description="the validators"
    )
    swarm: SwarmSection = Field(default_factory=SwarmSection, description="nodes that may submit")
    eval: EvalSection = Field(default_factory=EvalSection, description="held-out evaluation")
    hosting: HostingSection = Field(default_factory=HostingSection, description="environment hosts")
    store: StoreSection = Field(
        default_factory=StoreSection, description="where immutable objects live"
    )
    shardcast: ShardcastSection = Field(
        default_factory=ShardcastSection, description="how new weights reach the workers"
    )
    trackers: list[PluginChoice] = Field(default_factory=list, description="metric trackers")
    plugins: PluginsSection = Field(
        default_factory=PluginsSection, description="blocked plugins and observers"
    )

    @property
    def sanity_checks(self) -> list[CheckChoice]:
        """The checks that validators ask, in order; none where nothing is validated."""
        if self.run.trust == "none":
            return []
        return self.checks or [CheckChoice(use=name) for name in DEFAULT_CHECKS]

    @property
    def recomputing_engine(self) -> EngineSection:
        """[engine] as validators have it: its sampling and limits, perhaps with another plugin."""
        own = self.validation.engine
        if own is None:
            return self.engine
        update = {"use": own.use, "version": own.version, "params": own.params}
        return self.engine.model_copy(update=update)

    def node_class(self, node: str) -> str:
        """The class of a node, which the run's side decides."""
        found = self.swarm.find(node)
        return found.node_class if found else self.engine.node_class
