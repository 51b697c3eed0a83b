"""What is to be done, as plain JSON that any process on any machine can begin from.

Made by `scoring`, `measuring` and `profiles`; `work.open_work` begins one. Invariant: an order
holds no secret, only the names of environment variables that do.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, HostingSection, RunConfig
    from prime_core.hosting.description import HostDescription


@dataclass(frozen=True, slots=True)
class Order:
    """A kind of work and all that it depends on but its units.

    Attributes:
        kind: score given completions, or sample completions and score them.
        environment: an `EnvironmentChoice`, plain JSON.
        hosting: a `HostingSection`, plain JSON.
        block: blocked plugins.
        identity: of the environment as the driver found it; others must find the same.
        depth: units that one worker may have in work at once.
        config: a `RunConfig`, plain JSON; for sampling.
        model_digest: of the model directory; "" for models behind endpoints.
        sampling: samples, temperature and seed; for sampling.
        instruction: text and place of a length budget; None without.
    """

    kind: Literal["score", "sample"]
    environment: dict[str, Any]
    hosting: dict[str, Any]
    block: list[str]
    identity: dict[str, Any]
    depth: int
    config: dict[str, Any] | None = None
    model_digest: str = ""
    sampling: dict[str, Any] | None = None
    instruction: dict[str, Any] | None = None

    def to_json(self) -> str:
        """One line."""
        return json.dumps({name: getattr(self, name) for name in self.__slots__})

    @classmethod
    def from_json(cls, text: str) -> Order:
        """What `to_json` wrote."""
        return cls(**json.loads(text))


def dump(section: EnvironmentChoice | HostingSection | RunConfig) -> dict[str, Any]:
    """A section of a run config as plain JSON that validates to the same section."""
    return section.model_dump(mode="json", by_alias=True)


def identity(description: HostDescription) -> dict[str, Any]:
    """What scores of an environment depend on: its tasks, its parameters, its plugins' versions."""
    return {
        "dataset_digest": description.info.dataset_digest,
        "tasks": description.task_count,
        "params": json.loads(json.dumps(dict(description.params), sort_keys=True)),
        "verifier": description.verifier,
        "plugins": sorted(
            f"{plugin.kind}.{plugin.name} {plugin.distribution} {plugin.version}"
            for plugin in description.plugins
        ),
    }
