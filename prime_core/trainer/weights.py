"""The served weights of past policy versions, and the swap that computes under one of them.

`grpo.py` needs them for the mismatch with the engine, for drift and for the KL term's reference.
They are kept rounded to the served dtype, in main memory, as this rank's shards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from prime_core.trainer.fsdp import local_shards, shard_like
from prime_core.trainer.model import PolicyModel, hub_name


class WeightBank:
    """Weights by version. Every rank holds its own shards of the same versions."""

    def __init__(self, policy: PolicyModel, dtype: torch.dtype) -> None:
        """Args: the sharded policy, and the dtype that versions are served in."""
        self._policy = policy
        self._dtype = dtype
        self._shards: dict[int, list[Tensor]] = {}

    @property
    def versions(self) -> Collection[int]:
        """What is held."""
        return self._shards.keys()

    def remember(self, version: int) -> None:
        """Keep the policy's present weights as those of a version."""
        self._shards[version] = [
            part.to(device="cpu", dtype=self._dtype, copy=True)
            for part in local_shards(self._policy)
        ]

    def load(self, version: int, files: Sequence[Path]) -> None:
        """Keep the weights of a published version, read from its files."""
        from safetensors.torch import load_file

        whole = {name: tensor for file in files for name, tensor in load_file(file).items()}
        self._shards[version] = [
            shard_like(whole[hub_name(name)], parameter).to(
                device="cpu", dtype=self._dtype, copy=True
            )
            for name, parameter in self._policy.named_parameters()
        ]

    def keep_only(self, versions: Collection[int]) -> None:
        """Forget all other versions."""
        for version in [held for held in self._shards if held not in versions]:
            del self._shards[version]

    @contextmanager
    def swapped_in(self, version: int) -> Iterator[None]:
        """Give the policy a version's weights, and its own back afterwards, bit for bit."""
        shards = local_shards(self._policy)
        own = [part.clone() for part in shards]
        try:
            _copy(self._shards[version], shards)
            yield
        finally:
            _copy(own, shards)


def _copy(sources: Sequence[Tensor], targets: Sequence[Tensor]) -> None:
    with torch.no_grad():
        for source, target in zip(sources, targets, strict=True):
            target.copy_(source)
