"""The loss and the advantage function of the run, with a plugin's mistakes turned into its own.

`train.py` wraps what the hub makes. An exception or a wrong shape stops the run with the plugin's
name; broadcasting a wrong shape would train something else without a word.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from torch import Tensor

from prime_core.api.errors import PluginError
from prime_core.api.protocols import AdvantageFunction, Loss
from prime_core.hub import Hub


@dataclass(frozen=True, slots=True)
class GuardedAdvantage:
    """An advantage function whose answers are checked."""

    inner: AdvantageFunction
    hub: Hub
    name: str

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """One finite advantage per reward; PluginError otherwise."""
        with self.hub.at_work("advantage", self.name):
            found = list(self.inner.advantages(rewards))
        if len(found) != len(rewards) or not all(map(math.isfinite, found)):
            raise _wrong(
                self.hub,
                "advantage",
                self.name,
                f"it made of {len(rewards)} rewards the advantages {found[:4]}",
                "an advantage function returns one finite number per reward",
            )
        return found


@dataclass(frozen=True, slots=True)
class GuardedLoss:
    """A loss whose answers have the shape they must have."""

    inner: Loss
    hub: Hub
    name: str

    def token_losses(
        self, logprobs: Tensor, old_logprobs: Tensor, advantages: Tensor, mask: Tensor
    ) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Losses [T] and named values [T]; PluginError otherwise."""
        with self.hub.at_work("loss", self.name):
            losses, values = self.inner.token_losses(logprobs, old_logprobs, advantages, mask)
        for what, found in (("losses", losses), *values.items()):
            if found.shape != logprobs.shape:
                raise _wrong(
                    self.hub,
                    "loss",
                    self.name,
                    f"{what} are of shape {list(found.shape)}, not {list(logprobs.shape)}",
                    "token_losses returns one number per token; the engine aggregates",
                )
        return losses, values


def _wrong(hub: Hub, kind: str, name: str, what: str, fix: str) -> PluginError:
    owners = hub.candidates(kind, name)
    return PluginError(
        what,
        plugin=f"{kind}.{name}",
        distribution=owners[0].distribution if owners else None,
        phase="working",
        fix=fix,
    )
