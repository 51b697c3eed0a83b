"""The sections of a run config, every field with a one-line help and its unit.

Loaded by `prime_core.config.load`; read by every process. A key whose feature doesn't exist is
refused as unknown; nothing here imports anything heavier than pydantic.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

# names that become file names: labels, run names
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

# TOML has neither paths nor tuples, so these two accept a string and an array
FilePath = Annotated[Path, Field(strict=False)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Betas = Annotated[tuple[Beta, Beta], Field(strict=False)]


class Refusal(ValueError):
    """A value that can't work, with its fix; a validator raises it, `problems` shows both."""

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what}; {fix}")


class Section(BaseModel):
    """Base of all sections: unknown keys refused, values frozen, no guessing between types.

    Strict, because lax pydantic reads "3", 3.0 and true as the integer 3 or 1.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, strict=True, allow_inf_nan=False
    )


class PluginChoice(Section):
    """Which plugin a slot uses, which versions of its distribution will do, and its parameters."""

    use: str = Field(pattern=NAME, description="name of the plugin")
    version: str = Field(
        default="", description="version specifier its distribution must meet, e.g. >=0.1"
    )
    params: dict[str, Any] = Field(
        default_factory=dict, alias="with", description="parameters of the plugin"
    )


class RunSection(Section):
    """What the run is called, where it lies, and from what it is seeded."""

    name: str = Field(default="run", pattern=NAME, description="name of the run")
    id: str | None = Field(default=None, pattern=NAME, description="run id; random unless set")
    dir: FilePath = Field(default=Path("runs/run"), description="local directory of the run")
    seed: int = Field(
        default=0, ge=0, lt=2**63, description="seed of everything that isn't assigned"
    )
    trust: Literal["none"] = Field(
        default="none",
        description="none: the trainer checks schema and bounds itself, no validator",
    )


class ModelSection(Section):
    """The model that version 0 is made from."""

    path: str = Field(
        min_length=1, description="directory in Hugging Face layout, or package:NAME for GGUF"
    )
    gguf: str | None = Field(default=None, description="GGUF file inside path, converted once")
    dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="dtype of the served weights and of generation"
    )
    chat_template: str | None = Field(
        default=None, description="overrides the tokenizer's chat template"
    )


class NodeClass(Section):
    """What nodes of one class may generate."""

    max_tokens: int = Field(gt=0, description="token limit of one completion")


class EngineSection(PluginChoice):
    """The inference engine, its sampling, and how many local workers run it."""

    use: str = Field(
        default="transformers", pattern=NAME, description="name of the inference engine"
    )
    temperature: float = Field(default=1.0, gt=0, description="sampling temperature")
    max_tokens: int = Field(default=256, gt=0, description="token limit of one completion")
    max_prompt_tokens: int = Field(default=1024, gt=0, description="a longer prompt drops its task")
    max_turns: int = Field(
        default=8, gt=0, description="turn limit of environments with several turns"
    )
    top_p: float = Field(default=1.0, description="must be 1: a truncating sampler needs its mask")
    top_k: int = Field(default=0, description="must be 0: a truncating sampler needs its mask")
    min_p: float = Field(default=0.0, description="must be 0: a truncating sampler needs its mask")
    groups_per_submission: int = Field(default=8, gt=0, description="groups in one submission")
    workers: int = Field(default=1, ge=1, description="local worker processes")
    threads: int = Field(default=1, ge=1, description="torch threads of one worker")
    node_class: str = Field(default="default", description="class of the local workers")
    classes: dict[str, NodeClass] = Field(
        default_factory=dict, description="limits by node class; default is max_tokens"
    )

    @field_validator("top_p", "top_k", "min_p")
    @classmethod
    def _sampler_is_not_truncated(cls, value: float, info: ValidationInfo) -> float:
        if value != (1.0 if info.field_name == "top_p" else 0):
            raise Refusal(
                f"{info.field_name} = {value} truncates the sampler: it renormalises over the "
                "survivors, so the importance ratio is wrong without their mask, which isn't "
                "recorded",
                f"remove {info.field_name}",
            )
        return value

    def token_limit(self, node_class: str) -> int:
        """The token limit of one completion on a node of this class."""
        found = self.classes.get(node_class)
        return found.max_tokens if found else self.max_tokens


class TrainerSection(Section):
    """The optimisation of one rollout step."""

    steps: int = Field(default=100, gt=0, le=10**9, description="rollout steps of the run")
    groups_per_step: int = Field(
        default=16, gt=0, description="groups in the batch of a rollout step"
    )
    group_size: int = Field(default=8, ge=2, description="rollouts of one task (G)")
    optimizer_steps: int = Field(
        default=2, gt=0, validate_default=True, description="optimizer steps per rollout step"
    )
    lr: float = Field(default=1e-6, gt=0, description="learning rate after warm-up")
    warmup_steps: int = Field(default=0, ge=0, description="optimizer steps of linear warm-up")
    betas: Betas = Field(default=(0.9, 0.99), description="AdamW betas")
    eps: float = Field(default=1e-8, gt=0, description="AdamW epsilon")
    weight_decay: float = Field(default=0.01, ge=0, description="AdamW weight decay")
    max_grad_norm: float = Field(default=0.1, gt=0, description="gradient norm is clipped to this")
    pack_tokens: int = Field(default=2048, gt=0, description="tokens of one packed micro-batch")
    activation_checkpointing: bool = Field(
        default=False, description="recompute activations in backward"
    )
    param_dtype: Literal["float32", "bfloat16"] = Field(
        default="float32", description="FSDP2 compute dtype; master weights are float32"
    )
    ranks: int = Field(default=1, ge=1, description="torch.distributed processes")
    threads: int = Field(default=1, ge=1, description="torch threads of one rank")
    checkpoint_every: int = Field(default=10, gt=0, description="rollout steps between checkpoints")
    keep_checkpoints: int = Field(default=2, ge=1, description="checkpoints kept")
    max_mismatch_kl: float = Field(
        default=0.05,
        gt=0,
        description="run stops when engine and trainer disagree by more, in nats/token",
    )
    mismatch_share: float = Field(
        default=1.0,
        gt=0,
        le=1,
        description="share of the micro-batches whose mismatch with the engine is measured",
    )

    @field_validator("optimizer_steps")
    @classmethod
    def _a_group_for_every_optimizer_step(cls, value: int, info: ValidationInfo) -> int:
        groups = info.data.get("groups_per_step")
        if groups is not None and value > groups:
            raise Refusal(
                f"optimizer_steps {value} is above groups_per_step {groups}, so that some "
                "optimizer steps would have nothing to train",
                f"raise groups_per_step to {value} or lower optimizer_steps to {groups}",
            )
        return value


class LossSection(PluginChoice):
    """The policy loss, how token losses are aggregated, and the extra terms."""

    use: str = Field(default="grpo", pattern=NAME, description="name of the loss")
    aggregation: Literal["sequence_mean", "token_mean"] = Field(
        default="sequence_mean", description="sequence_mean is the paper's formula"
    )
    entropy_coef: float = Field(default=0.0, ge=0, description="weight of the entropy bonus")
    kl_coef: float = Field(default=0.0, ge=0, description="weight of the KL term to version 0")
    importance_sampling_cap: float = Field(
        default=0.0,
        ge=0,
        description="weigh tokens by min(cap, probability now / when sampled); 0: off (paper)",
    )


class AdvantageSection(PluginChoice):
    """How rewards of a group become advantages."""

    use: str = Field(
        default="group_norm", pattern=NAME, description="name of the advantage function"
    )


class AsyncSection(Section):
    """How far generation may run ahead of training."""

    level: int = Field(
        default=2, ge=0, le=64, description="new work for step s uses a version <= s-level"
    )
    max: int | None = Field(
        default=None, ge=0, description="oldest lag that may train; default is level"
    )

    @property
    def max_lag(self) -> int:
        """The oldest lag that may train."""
        return self.level if self.max is None else self.max

    @field_validator("max")
    @classmethod
    def _level_within_max(cls, value: int | None, info: ValidationInfo) -> int | None:
        level = info.data.get("level")
        if value is not None and level is not None and level > value:
            raise Refusal(
                f"level {level} is above max {value}, so that nothing could ever train",
                f"raise max to {level} or lower level to {value}",
            )
        return value


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
    eval: EvalSection = Field(default_factory=EvalSection, description="held-out evaluation")
    hosting: HostingSection = Field(default_factory=HostingSection, description="environment hosts")
    store: StoreSection = Field(
        default_factory=StoreSection, description="where immutable objects live"
    )
    trackers: list[PluginChoice] = Field(default_factory=list, description="metric trackers")
    plugins: PluginsSection = Field(
        default_factory=PluginsSection, description="blocked plugins and observers"
    )
