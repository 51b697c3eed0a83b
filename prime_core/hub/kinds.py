"""The kinds of plugins: the hook that registers each, the spec it returns, the protocols it serves.

Read by the loader and by `prime-core plugins`. A kind that isn't in this table doesn't exist.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass

from prime_core.api import (
    AdvantageFunction,
    AdvantageSpec,
    DataFilterSpec,
    Environment,
    EnvironmentSpec,
    GroupFilter,
    InferenceEngine,
    InferenceEngineSpec,
    LengthBudget,
    LengthBudgetSpec,
    Loss,
    LossSpec,
    RewardFunction,
    RewardSpec,
    Sandbox,
    SandboxSpec,
    SanityCheck,
    SanityCheckSpec,
    Spec,
    TaskFilter,
    Tracker,
    TrackerSpec,
    Verifier,
    VerifierSpec,
)

OBSERVER = "observer"


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of plugin.

    Attributes:
        name: the entry-point name's part before the dot.
        hook: the registration hook; "" for observers, which register nothing.
        spec: what the hook returns a list of.
        protocols: the made object implements at least one of these, whole.
    """

    name: str
    hook: str
    spec: type[Spec]
    protocols: tuple[type, ...]


KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind("environment", "prime_environments", EnvironmentSpec, (Environment,)),
        Kind("verifier", "prime_verifiers", VerifierSpec, (Verifier,)),
        Kind("reward", "prime_rewards", RewardSpec, (RewardFunction,)),
        Kind("length_budget", "prime_length_budgets", LengthBudgetSpec, (LengthBudget,)),
        Kind("data_filter", "prime_data_filters", DataFilterSpec, (TaskFilter, GroupFilter)),
        Kind(
            "inference_engine", "prime_inference_engines", InferenceEngineSpec, (InferenceEngine,)
        ),
        Kind("sandbox", "prime_sandboxes", SandboxSpec, (Sandbox,)),
        Kind("sanity_check", "prime_sanity_checks", SanityCheckSpec, (SanityCheck,)),
        Kind("tracker", "prime_trackers", TrackerSpec, (Tracker,)),
        Kind("loss", "prime_losses", LossSpec, (Loss,)),
        Kind("advantage", "prime_advantages", AdvantageSpec, (AdvantageFunction,)),
        Kind(OBSERVER, "", Spec, ()),
    )
}

# Their modules are imported in environment hosts only, never by worker, trainer or supervisor.
HOSTED_KINDS = frozenset({"environment", "verifier", "reward", "sandbox"})

NOTIFICATIONS: tuple[str, ...] = (
    "prime_run_started",
    "prime_group_finished",
    "prime_step_finished",
)


def members(protocol: type) -> list[str]:
    """The names that an implementation of a protocol must have, inherited ones included."""
    names: list[str] = []
    for base in reversed(protocol.__mro__):
        if getattr(base, "_is_protocol", False):
            names += [name for name in vars(base) if not name.startswith("_")]
    return list(dict.fromkeys(names))


def missing_members(made: object, protocols: Sequence[type]) -> list[str]:
    """What `made` lacks of the protocol it comes closest to; [] where it implements one.

    Looks without calling: a property such as an environment's `info` may be costly.
    """
    if not protocols:
        return []
    absent = object()
    lacking = [
        [name for name in members(protocol) if inspect.getattr_static(made, name, absent) is absent]
        for protocol in protocols
    ]
    return min(lacking, key=len)
