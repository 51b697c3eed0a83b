"""Whose signatures count in a run: the addresses of its nodes and validators.

Read by the intake and the validators. Local roles sign with keys of the run directory, which its
preparation makes; everybody else is named in the config.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.signing import Signer
from prime_core.store.layout import KEYS

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """A node that may submit; `address` None where its local key doesn't exist yet."""

    name: str
    address: str | None
    provider: str
    node_class: str
    stake: int


def validator_name(index: int) -> str:
    """The name of a local validator process, and of its key."""
    return f"validator-{index}"


def local_key(run_dir: Path, name: str) -> Path:
    """Where a local role's key lies."""
    return run_dir / KEYS / f"{name}.key"


def own_key(run_dir: Path, name: str) -> Signer:
    """A local role's key, made where there is none yet."""
    path = local_key(run_dir, name)
    return Signer.load(path) if path.exists() else Signer.create(path)


def local_roles(config: RunConfig) -> Iterator[str]:
    """Names of the local roles whose signatures others of the run verify."""
    yield from (validator_name(index) for index in range(config.validation.processes))
    if config.swarm.nodes:
        yield from (node.label for node in config.swarm.nodes if node.address is None)
    else:
        yield from (f"worker-{index}" for index in range(config.engine.workers))


def make_keys(config: RunConfig) -> None:
    """Make the keys of the local roles, so that each of them knows the others' addresses."""
    for name in local_roles(config):
        own_key(config.run.dir, name)


def validator_addresses(config: RunConfig) -> frozenset[str]:
    """Whose verdicts count."""
    local = (validator_name(index) for index in range(config.validation.processes))
    return frozenset(
        {*config.validation.addresses, *(_address(config, name) for name in local)} - {None}  # type: ignore[arg-type]
    )


def node_identities(config: RunConfig) -> dict[str, NodeIdentity]:
    """Every node that may submit, by name."""
    if not config.swarm.nodes:
        return {
            name: NodeIdentity(name, _address(config, name), "local", config.engine.node_class, 0)
            for name in (f"worker-{index}" for index in range(config.engine.workers))
        }
    return {
        node.label: NodeIdentity(
            node.label,
            node.address or _address(config, node.label),
            node.provider,
            node.node_class,
            node.stake,
        )
        for node in config.swarm.nodes
    }


def _address(config: RunConfig, name: str) -> str | None:
    path = local_key(config.run.dir, name)
    return Signer.load(path).address if path.exists() else None
