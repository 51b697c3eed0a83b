"""The built-in loss `grpo` and advantage `group_norm`, as plugins like anybody else's.

The hub imports this module to list and validate, so it loads no torch; the factories do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field, model_validator

from prime_core.api.hookspecs import hookimpl
from prime_core.api.specs import AdvantageSpec, Context, LossSpec, Params

if TYPE_CHECKING:
    from prime_core.trainer.advantages import GroupNorm
    from prime_core.trainer.loss import GrpoLoss


class GrpoParams(Params):
    """The bounds of the two-sided clip; the defaults are the paper's (INTELLECT-2, section 3.4)."""

    epsilon: float = Field(0.2, gt=0, lt=1, description="PPO clip: ratios within 1 +- epsilon")
    delta: float = Field(4.0, description="largest ratio that a negative advantage may push by")

    @model_validator(mode="after")
    def _delta_above_the_ppo_clip(self) -> GrpoParams:
        if not self.delta > 1 + self.epsilon:
            raise ValueError(
                f"delta {self.delta:g} must be above 1 + epsilon = {1 + self.epsilon:g}: a lower "
                "one would undo the PPO clip; raise delta (the paper uses 4) or lower epsilon"
            )
        return self


class GroupNormParams(Params):
    """How a group's rewards are scaled.

    The defaults, sample standard deviation (divisor G - 1) plus 1e-6, are those of the code that
    trained INTELLECT-2; `none` leaves the rewards' own scale (Dr. GRPO, arXiv 2503.20783).
    """

    std: Literal["population", "sample", "none"] = Field(
        "sample", description="divisor of the deviation: G, G - 1, or no scaling at all"
    )
    epsilon: float = Field(1e-6, ge=0, description="added to the standard deviation")


def make_grpo(params: GrpoParams, context: Context) -> GrpoLoss:
    """The factory of the loss `grpo`."""
    from prime_core.trainer.loss import GrpoLoss

    return GrpoLoss(epsilon=params.epsilon, delta=params.delta)


def make_group_norm(params: GroupNormParams, context: Context) -> GroupNorm:
    """The factory of the advantage `group_norm`."""
    from prime_core.trainer.advantages import GroupNorm

    return GroupNorm(std=params.std, epsilon=params.epsilon)


@hookimpl
def prime_losses() -> list[LossSpec]:
    """Register `grpo`."""
    return [
        LossSpec(
            name="grpo",
            params=GrpoParams,
            factory=make_grpo,
            summary="GRPO with the two-sided clip of INTELLECT-2",
        )
    ]


@hookimpl
def prime_advantages() -> list[AdvantageSpec]:
    """Register `group_norm`."""
    return [
        AdvantageSpec(
            name="group_norm",
            params=GroupNormParams,
            factory=make_group_norm,
            summary="reward minus the group's mean, over its standard deviation",
        )
    ]
