"""The sections of a run config, every field with a one-line help and its unit.

Loaded by `prime_core.config.load`; read by every process. A key whose feature doesn't exist is
refused as unknown; nothing here imports anything heavier than pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Section(BaseModel):
    """Base of all sections: unknown keys refused, values frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class PluginChoice(Section):
    """Which plugin a slot uses, which versions of its distribution will do, and its parameters."""

    use: str = Field(description="name of the plugin")
    version: str = Field("", description="version specifier its distribution must meet, e.g. >=0.1")
    params: dict[str, Any] = Field(
        default_factory=dict, alias="with", description="parameters of the plugin"
    )


class RunSection(Section):
    """What the run is called, where it lies, and from what it is seeded."""

    name: str = Field("run", pattern=r"^[A-Za-z0-9._-]{1,64}$", description="name of the run")
    id: str | None = Field(
        None, pattern=r"^[A-Za-z0-9._-]{1,64}$", description="run id; random unless set"
    )
    dir: Path = Field(Path("runs/run"), description="local directory of the run")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of everything that isn't assigned")
    trust: Literal["none"] = Field(
        "none", description="none: the trainer checks schema and bounds itself, no validator"
    )


class ModelSection(Section):
    """The model that version 0 is made from."""

    path: str = Field(description="directory in Hugging Face layout, or package:NAME for GGUF")
    gguf: str | None = Field(None, description="GGUF file inside path, converted once")
    dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="dtype of the served weights and of generation"
    )
    chat_template: str | None = Field(None, description="overrides the tokenizer's chat template")


class NodeClass(Section):
    """What nodes of one class may generate."""

    max_tokens: int = Field(gt=0, description="token limit of one completion")


class EngineSection(PluginChoice):
    """The inference engine, its sampling, and how many local workers run it."""

    use: str = Field("transformers", description="name of the inference engine")
    temperature: float = Field(1.0, gt=0, description="sampling temperature")
    max_tokens: int = Field(256, gt=0, description="token limit of one completion")
    max_prompt_tokens: int = Field(1024, gt=0, description="a longer prompt drops its task")
    max_turns: int = Field(8, gt=0, description="turn limit of environments with several turns")
    top_p: float = Field(1.0, description="must be 1: a truncating sampler needs its mask")
    top_k: int = Field(0, description="must be 0: a truncating sampler needs its mask")
    min_p: float = Field(0.0, description="must be 0: a truncating sampler needs its mask")
    groups_per_submission: int = Field(8, gt=0, description="groups in one submission")
    workers: int = Field(1, ge=1, description="local worker processes")
    threads: int = Field(1, ge=1, description="torch threads of one worker")
    node_class: str = Field("default", description="class of the local workers")
    classes: dict[str, NodeClass] = Field(
        default_factory=dict, description="limits by node class; default is max_tokens"
    )

    @model_validator(mode="after")
    def _sampler_is_not_truncated(self) -> EngineSection:
        if self.top_p != 1.0 or self.top_k != 0 or self.min_p != 0.0:
            raise ValueError(
                "a truncating sampler (top_p, top_k, min_p) renormalises over the survivors, so "
                "the importance ratio is wrong without its mask, which isn't recorded; remove it"
            )
        return self

    def token_limit(self, node_class: str) -> int:
        """The token limit of one completion on a node of this class."""
        found = self.classes.get(node_class)
        return found.max_tokens if found else self.max_tokens


class TrainerSection(Section):
    """The optimisation of one rollout step."""

    steps: int = Field(100, gt=0, description="rollout steps of the run")
    groups_per_step: int = Field(16, gt=0, description="groups in the batch of a rollout step")
    group_size: int = Field(8, ge=2, description="rollouts of one task (G)")
    optimizer_steps: int = Field(2, gt=0, description="optimizer steps per rollout step")
    lr: float = Field(1e-6, gt=0, description="learning rate after warm-up")
    warmup_steps: int = Field(0, ge=0, description="optimizer steps of linear warm-up")
    betas: tuple[float, float] = Field((0.9, 0.99), description="AdamW betas")
    eps: float = Field(1e-8, gt=0, description="AdamW epsilon")
    weight_decay: float = Field(0.01, ge=0, description="AdamW weight decay")
    max_grad_norm: float = Field(0.1, gt=0, description="gradient norm is clipped to this")
    pack_tokens: int = Field(2048, gt=0, description="tokens of one packed micro-batch")
    activation_checkpointing: bool = Field(False, description="recompute activations in backward")
    param_dtype: Literal["float32", "bfloat16"] = Field(
        "float32", description="FSDP2 compute dtype; master weights are float32"
    )
    ranks: int = Field(1, ge=1, description="torch.distributed processes")
    threads: int = Field(1, ge=1, description="torch threads of one rank")
    checkpoint_every: int = Field(10, gt=0, description="rollout steps between checkpoints")
    keep_checkpoints: int = Field(2, ge=1, description="checkpoints kept")
    max_mismatch_kl: float = Field(
        0.05, gt=0, description="run stops when engine and trainer disagree by more, in nats/token"
    )


class LossSection(PluginChoice):
    """The policy loss, how token losses are aggregated, and the extra terms."""

    use: str = Field("grpo", description="name of the loss")
    aggregation: Literal["sequence_mean", "token_mean"] = Field(
        "sequence_mean", description="sequence_mean is the paper's formula"
    )
    entropy_coef: float = Field(0.0, ge=0, description="weight of the entropy bonus")
    kl_coef: float = Field(0.0, ge=0, description="weight of the KL term to version 0")


class AdvantageSection(PluginChoice):
    """How rewards of a group become advantages."""

    use: str = Field("group_norm", description="name of the advantage function")


class AsyncSection(Section):
    """How far generation may run ahead of training."""

    level: int = Field(2, ge=0, le=64, description="new work for step s uses a version <= s-level")
    max: int | None = Field(None, ge=0, description="oldest lag that may train; default is level")

    @property
    def max_lag(self) -> int:
        """The oldest lag that may train."""
        return self.level if self.max is None else self.max

    @model_validator(mode="after")
    def _level_within_max(self) -> AsyncSection:
        if self.max is not None and self.level > self.max:
            raise ValueError(
                f"level {self.level} is above max {self.max}: nothing could ever train; "
                f"raise max to {self.level} or lower level"
            )
        return self


class EnvironmentChoice(PluginChoice):
    """One environment of the run."""

    name: str | None = Field(None, description="label in metrics; default is the plugin's name")
    weight: float = Field(1.0, gt=0, description="share of the groups, relative to the others")
    python: Path | None = Field(None, description="interpreter of its hosts; default is this one")
    verifier: PluginChoice | None = Field(None, description="replaces the environment's verifier")

    @property
    def label(self) -> str:
        """The environment's name in rollouts and metrics."""
        return self.name or self.use


class RewardSection(PluginChoice):
    """The reward function."""

    use: str = Field("task", description="name of the reward function")


class FiltersSection(Section):
    """Data filters, applied in order."""

    offline: list[PluginChoice] = Field(default_factory=list, description="drop tasks before")
    online: list[PluginChoice] = Field(default_factory=list, description="drop finished groups")


class EvalSection(Section):
    """Held-out evaluation of policy versions."""

    every: int = Field(0, ge=0, description="rollout steps between evaluations; 0: first and last")
    tasks: int = Field(256, gt=0, description="held-out tasks of one evaluation")
    environments: list[EnvironmentChoice] = Field(
        default_factory=list, description="environments with held-out tasks"
    )


class HostingSection(Section):
    """Environment hosts and their limits."""

    hosts: int = Field(1, ge=1, description="host processes per environment and worker")
    time_limit_s: float = Field(30.0, gt=0, description="seconds one call may take, then killed")
    memory_mb: int = Field(2048, gt=0, description="address space of one host, MiB")
    batch: int = Field(64, gt=0, description="scores asked for in one message")


class StoreSection(Section):
    """Where the run's immutable objects live."""

    url: str | None = Field(None, description="fsspec URL; default is the run's directory")


class PluginsSection(Section):
    """Which plugins are kept out and which observers are let in."""

    block: list[str] = Field(default_factory=list, description="KIND.NAME or distribution names")
    observers: list[str] = Field(default_factory=list, description="observer plugins to load")


class RunConfig(Section):
    """A whole run config."""

    run: RunSection = Field(default_factory=RunSection)
    model: ModelSection
    engine: EngineSection = Field(default_factory=lambda: EngineSection())
    trainer: TrainerSection = Field(default_factory=lambda: TrainerSection())
    loss: LossSection = Field(default_factory=lambda: LossSection())
    advantage: AdvantageSection = Field(default_factory=lambda: AdvantageSection())
    async_: AsyncSection = Field(default_factory=lambda: AsyncSection(), alias="async")
    environments: list[EnvironmentChoice] = Field(min_length=1)
    reward: RewardSection = Field(default_factory=lambda: RewardSection())
    length_budget: PluginChoice | None = None
    filters: FiltersSection = Field(default_factory=lambda: FiltersSection())
    eval: EvalSection = Field(default_factory=lambda: EvalSection())
    hosting: HostingSection = Field(default_factory=lambda: HostingSection())
    store: StoreSection = Field(default_factory=lambda: StoreSection())
    trackers: list[PluginChoice] = Field(default_factory=list)
    plugins: PluginsSection = Field(default_factory=lambda: PluginsSection())
