"""Specs: what registration hooks return. A spec names a plugin, its parameters, its factory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias

from pydantic import BaseModel, ConfigDict

from prime_core.api.sandboxing import IsolationLevel, Sandbox

API_VERSION = "1"


class Params(BaseModel):
    """Base of every plugin's parameters: unknown keys are refused, values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NoParams(Params):
    """For a plugin without parameters."""


class Context(Protocol):
    """What a factory may ask of the engine."""

    @property
    def cache_dir(self) -> Path:
        """Where downloaded data is kept."""
        ...

    @property
    def run_dir(self) -> Path | None:
        """The run's local directory, or None outside a run."""
        ...

    @property
    def offline(self) -> bool:
        """True where nothing may be fetched."""
        ...

    def sandbox(self, min_level: IsolationLevel = "namespaces") -> Sandbox:
        """The sandbox that `[hosting] sandbox` selects; one and the same for all who ask.

        Only environment hosts have one.

        Raises:
            SandboxError: there is none, or it holds less than `min_level` on this host.
            PluginError: it can't be found or made.
        """
        ...


Factory: TypeAlias = Callable[[Any, Context], Any]


@dataclass(frozen=True, slots=True)
class Spec:
    """Base of the specs of all kinds.

    Attributes:
        name: unique within its kind; equals the entry point's name behind the dot.
        params: the model that `with = {...}` of a run config is validated by.
        factory: makes the object from validated parameters and a context.
        summary: one line for `prime-core plugins show`.
        api: the version of this extension surface that the plugin is written for.
    """

    kind: ClassVar[str] = ""

    name: str
    factory: Factory
    summary: str
    params: type[BaseModel] = NoParams
    api: str = API_VERSION


class EnvironmentSpec(Spec):
    """Makes an `Environment`."""

    kind = "environment"


class VerifierSpec(Spec):
    """Makes a `Verifier`."""

    kind = "verifier"


class RewardSpec(Spec):
    """Makes a `RewardFunction`."""

    kind = "reward"


class LengthBudgetSpec(Spec):
    """Makes a `LengthBudget`."""

    kind = "length_budget"


class DataFilterSpec(Spec):
    """Makes a `TaskFilter`, a `GroupFilter`, or both in one object."""

    kind = "data_filter"


@dataclass(frozen=True)
class InferenceEngineSpec(Spec):
    """Makes an `InferenceEngine`.

    Attributes:
        untrainable: why nothing that it generates can be trained on; "" where it can. A run config
            that selects such an engine is refused with this reason.
    """

    kind: ClassVar[str] = "inference_engine"

    untrainable: str = ""


class TrackerSpec(Spec):
    """Makes a `Tracker`."""

    kind = "tracker"


class LossSpec(Spec):
    """Makes a `Loss`."""

    kind = "loss"


class AdvantageSpec(Spec):
    """Makes an `AdvantageFunction`."""

    kind = "advantage"


class SandboxSpec(Spec):
    """Makes a `Sandbox`."""

    kind = "sandbox"


@dataclass(frozen=True, slots=True)
class SanityCheckSpec(Spec):
    """Makes a `SanityCheck`.

    Attributes:
        cost: what one submission costs, in words.
        catches: what it finds, in words.
    """

    kind: ClassVar[str] = "sanity_check"

    cost: str = ""
    catches: str = ""
