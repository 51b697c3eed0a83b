"""What every host of a pool is started with, made from the sections of a run config.

`HostPool.open` makes it, slots and processes read it. Invariant: a secret stands here only as long
as the pool lives, and in no text.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prime_core.config.secrets import is_reference
from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hub import RunContext


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What every host of a pool is started with.

    Attributes:
        kind: what the hosts hold: an environment, or a verifier alone.
        label: its name, for messages.
        interpreter: the Python that runs the host.
        request: the first message without `full`, plain JSON; holds secrets.
        time_limit_s: seconds one item may take.
        start_limit_s: seconds until the environment has to be open.
    """

    kind: Literal["environment", "verifier"]
    label: str
    interpreter: Path
    request: dict[str, Any] = field(repr=False)
    time_limit_s: float
    start_limit_s: float

    @property
    def where(self) -> str:
        """The place that errors name."""
        return f"{self.kind} {self.label}, interpreter {self.interpreter}"


def host_settings(
    environment: EnvironmentChoice,
    reward: PluginChoice | None,
    hosting: HostingSection,
    cache_dir: Path,
    run_dir: Path | None,
    block: Sequence[str],
) -> HostSettings:
    """The settings that these sections ask for; see `HostPool.open`."""
    plugins = {
        "environment": _choice_json(environment),
        "reward": None if reward is None else _choice_json(reward),
    }
    return _settings(
        "environment", environment.label, environment.python, plugins, hosting, cache_dir, run_dir,
        block,
    )  # fmt: skip


def verifier_settings(
    verifier: PluginChoice, python: Path | None, hosting: HostingSection, cache_dir: Path
) -> HostSettings:
    """The settings of hosts that hold a verifier alone; see `VerifierPool.open`."""
    plugins = {"environment": None, "reward": None, "verifier": _choice_json(verifier)}
    return _settings("verifier", verifier.use, python, plugins, hosting, cache_dir, None, ())


def _settings(
    kind: Literal["environment", "verifier"],
    label: str,
    python: Path | None,
    plugins: dict[str, Any],
    hosting: HostingSection,
    cache_dir: Path,
    run_dir: Path | None,
    block: Sequence[str],
) -> HostSettings:
    return HostSettings(
        kind=kind,
        label=label,
        interpreter=(python or Path(sys.executable)).absolute(),
        request={
            **plugins,
            "variables": {
                name: os.environ[name] for name in _references(plugins) if name in os.environ
            },
            "block": list(block),
            "cache_dir": str(cache_dir.absolute()),
            "run_dir": None if run_dir is None else str(run_dir.absolute()),
            "offline": RunContext.from_environment().offline,
            "memory_mb": hosting.memory_mb,
            "sandbox": None if hosting.sandbox is None else _choice_json(hosting.sandbox),
        },
        time_limit_s=hosting.time_limit_s,
        start_limit_s=hosting.start_limit_s,
    )


def _choice_json(choice: PluginChoice) -> dict[str, Any]:
    """A plugin choice in JSON, without what the hosts needn't know."""
    return choice.model_dump(
        mode="json", by_alias=True, exclude={"name", "weight", "python", "bad_golds"}
    )


def _references(value: object) -> Iterator[str]:
    """The variables that parameters name as `env:NAME`: hosts inherit no others of that kind."""
    if isinstance(value, str) and is_reference(value):
        yield value.removeprefix("env:")
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)
