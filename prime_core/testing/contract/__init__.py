"""Contract test classes, one per kind of plugin. An author inherits one and overrides its fixtures.

A class is collected where it's inherited, in the author's own test module; names are loaded one at
a time, so that a verifier's tests import nothing of the engines.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_core.testing.contract.advantage import AdvantageContract
    from prime_core.testing.contract.data_filter import DataFilterContract
    from prime_core.testing.contract.environment import EnvironmentContract
    from prime_core.testing.contract.inference_engine import InferenceEngineContract
    from prime_core.testing.contract.length_budget import LengthBudgetContract
    from prime_core.testing.contract.loss import LossContract
    from prime_core.testing.contract.reward import RewardFunctionContract
    from prime_core.testing.contract.sandbox import SandboxContract
    from prime_core.testing.contract.sanity_check import SanityCheckContract
    from prime_core.testing.contract.tracker import TrackerContract
    from prime_core.testing.contract.verifier import VerifierContract

__all__ = [
    "AdvantageContract",
    "DataFilterContract",
    "EnvironmentContract",
    "InferenceEngineContract",
    "LengthBudgetContract",
    "LossContract",
    "RewardFunctionContract",
    "SandboxContract",
    "SanityCheckContract",
    "TrackerContract",
    "VerifierContract",
]

_MODULES = {
    "AdvantageContract": "advantage",
    "DataFilterContract": "data_filter",
    "EnvironmentContract": "environment",
    "InferenceEngineContract": "inference_engine",
    "LengthBudgetContract": "length_budget",
    "LossContract": "loss",
    "RewardFunctionContract": "reward",
    "SandboxContract": "sandbox",
    "SanityCheckContract": "sanity_check",
    "TrackerContract": "tracker",
    "VerifierContract": "verifier",
}


def __getattr__(name: str) -> type:
    """Import the class's module when it's asked for."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"{__name__}.{_MODULES[name]}")
    contract: type = getattr(module, name)
    return contract
