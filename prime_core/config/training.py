"""The sections that decide what is optimised: trainer, loss, advantage, allowed lags.

Read through `prime_core.config.sections`.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationInfo, field_validator

from prime_core.config.section import NAME, Betas, PluginChoice, Refusal, Section


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
