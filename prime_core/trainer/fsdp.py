"""FSDP2 on gloo or nccl: the process group, the sharding, and the collectives around it.

One rank or many run the same code. Masters and optimizer state are float32 shards; gradients are
averaged over ranks, so the losses that `grpo.py` sums are multiplied by their number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

from prime_core.trainer.model import PolicyModel, hub_name


@dataclass(frozen=True, slots=True)
class World:
    """This process among the ranks, and the device it computes on."""

    rank: int
    size: int
    device: torch.device

    @property
    def leads(self) -> bool:
        """Whether this rank writes what only one may write."""
        return self.rank == 0


@contextmanager
def open_world(threads: int) -> Iterator[World]:
    """Join torchrun's ranks, or be a world of one; leaves on exit.

    Args:
        threads: torch threads of this process.
    """
    torch.set_num_threads(threads)
    cuda = torch.cuda.is_available()
    local = int(os.environ.get("LOCAL_RANK", "0"))
    device = torch.device("cuda", local) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    if os.environ.get("LOCAL_WORLD_SIZE") == os.environ.get("WORLD_SIZE"):
        # All ranks on this machine: gloo must not depend on how its host name resolves.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    backend = "cpu:gloo,cuda:nccl" if cuda else "gloo"
    if "RANK" in os.environ:
        dist.init_process_group(backend)
    else:
        alone = dist.HashStore()  # type: ignore[attr-defined]  # exported without a stub
        dist.init_process_group(backend, store=alone, rank=0, world_size=1)
    try:
        yield World(dist.get_rank(), dist.get_world_size(), device)
    finally:
        dist.destroy_process_group()


def shard(policy: PolicyModel, world: World, param_dtype: torch.dtype) -> None:
    """Shard every layer, then the rest, in place; `param_dtype` is what forward computes in."""
    mesh = init_device_mesh(world.device.type, (world.size,))
    precision = MixedPrecisionPolicy()
    if param_dtype == torch.bfloat16:
        precision = MixedPrecisionPolicy(param_dtype=param_dtype, reduce_dtype=torch.float32)
    policy.to(world.device)
    # The root too is resharded after forward: by default it keeps its gathered weights until
    # backward, and a pass under other weights would go through those of the pass before.
    for module in (*policy.layers, policy):
        fully_shard(module, mesh=mesh, mp_policy=precision, reshard_after_forward=True)


def sync_gradients(policy: nn.Module, on: bool) -> None:
    """Whether the next backward reduces gradients: only that of the last micro-batch does."""
    if isinstance(policy, FSDPModule):
        policy.set_requires_gradient_sync(on)


def local_shards(policy: nn.Module) -> list[Tensor]:
    """This rank's part of every parameter, in order; writing to it writes the parameter."""
    return [
        parameter.to_local() if isinstance(parameter, DTensor) else parameter.data
        for parameter in policy.parameters()
    ]


def shard_like(full: Tensor, parameter: nn.Parameter) -> Tensor:
    """This rank's part of a full tensor that every rank holds."""
    if not isinstance(parameter, DTensor):
        return full
    from torch.distributed.tensor import distribute_tensor

    sharded = distribute_tensor(
        full.to(parameter.device), parameter.device_mesh, parameter.placements, src_data_rank=None
    )
    return sharded.to_local()


def full_weights(policy: PolicyModel, world: World, dtype: torch.dtype) -> dict[str, Tensor]:
    """Whole tensors in `dtype` on the CPU under their Hugging Face names; {} but on rank 0.

    Collective: one parameter at a time is whole on every rank. Tied weights appear once.
    """
    weights: dict[str, Tensor] = {}
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            whole: Tensor = parameter
            if isinstance(whole, DTensor):
                # One rank's part is all there is; gathering it costs ten times the copy.
                whole = whole.to_local() if world.size == 1 else whole.full_tensor()
            if world.leads:
                copied = whole.to(device="cpu", dtype=dtype, copy=True)
                weights[hub_name(name)] = copied.contiguous()
    return weights


def clip_gradients(policy: nn.Module, max_norm: float) -> float:
    """Scale all gradients so that their global norm is at most `max_norm`; the norm before."""
    norm = torch.nn.utils.clip_grad_norm_(policy.parameters(), max_norm)
    return float(norm.full_tensor() if isinstance(norm, DTensor) else norm)


def sum_over_ranks(values: Sequence[float], world: World) -> list[float]:
    """Element-wise sums over all ranks, in float64. Collective."""
    if world.size == 1:
        return list(values)
    summed = torch.tensor(values, dtype=torch.float64)
    dist.all_reduce(summed)
    result: list[float] = summed.tolist()
    return result


def max_over_ranks(value: float, world: World) -> float:
    """The largest of all ranks' values. Collective."""
    if world.size == 1:
        return value
    largest = torch.tensor(value, dtype=torch.float64)
    dist.all_reduce(largest, dist.ReduceOp.MAX)
    return float(largest)


def barrier(world: World) -> None:
    """Wait for all ranks."""
    if world.size > 1:
        dist.barrier()
