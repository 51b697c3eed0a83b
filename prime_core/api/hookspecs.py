"""The whole extension surface: every hook, its arguments, and what an implementation returns.

Hooks register, objects work: a registration hook returns specs, and the engine calls the typed
objects that those specs make. Notification hooks only observe; their exceptions are logged and
counted, never fatal. docs/reference/hooks.md shows each signature; a test holds it to this file.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pluggy

from prime_core.api.specs import (
    AdvantageSpec,
    DataFilterSpec,
    EnvironmentSpec,
    InferenceEngineSpec,
    LengthBudgetSpec,
    LossSpec,
    RewardSpec,
    SandboxSpec,
    SanityCheckSpec,
    TrackerSpec,
    VerifierSpec,
)

if TYPE_CHECKING:
    from prime_core.api.types import RewardedGroup

PROJECT = "prime_core"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)

# --- registration -------------------------------------------------------------------------------


@hookspec
def prime_environments() -> list[EnvironmentSpec]:
    """Return the environments of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_verifiers() -> list[VerifierSpec]:
    """Return the verifiers of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_rewards() -> list[RewardSpec]:
    """Return the reward functions of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_length_budgets() -> list[LengthBudgetSpec]:
    """Return the length budgets of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_data_filters() -> list[DataFilterSpec]:
    """Return the offline and online data filters of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_sanity_checks() -> list[SanityCheckSpec]:
    """Return the checks of submitted rollouts of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_inference_engines() -> list[InferenceEngineSpec]:
    """Return the inference engines of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_sandboxes() -> list[SandboxSpec]:
    """Return the sandboxes of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_trackers() -> list[TrackerSpec]:
    """Return the metric trackers of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_losses() -> list[LossSpec]:
    """Return the policy losses of this distribution."""
    raise AssertionError("a hook specification is never called")


@hookspec
def prime_advantages() -> list[AdvantageSpec]:
    """Return the advantage functions of this distribution."""
    raise AssertionError("a hook specification is never called")


# --- notification -------------------------------------------------------------------------------


@hookspec
def prime_run_started(config: Mapping[str, object]) -> None:
    """Observe that a run starts or resumes; `config` is the resolved config without secrets.

    Called first in every process that loads observers: supervisor, intake, and the trainer's first
    rank; again in one that is restarted.
    """


@hookspec
def prime_group_finished(group: RewardedGroup) -> None:
    """Observe a group that the intake accepted or filtered; called in the intake, once a group.

    An intake that is killed between a receipt and this call never makes it.
    """


@hookspec
def prime_step_finished(step: int, metrics: Mapping[str, float]) -> None:
    """Observe that the trainer finished a step; called in the trainer's first rank.

    A trainer that resumes trains the steps since its checkpoint again, and calls again for each.
    """
