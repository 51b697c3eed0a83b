"""Nodes that run something cheaper than the claimed policy: fewer layers, int8, another dtype.

With their own numbers they are honest about what they computed; with honest proofs they spend one
forward pass of the claimed policy on top, so that only their words differ.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from prime_core.api import InferenceEngine, PolicyFiles
from prime_core.testing.attacks.attack import Attempt, Forge, write
from prime_core.testing.attacks.node import produce
from prime_core.testing.attacks.text import reword
from prime_core.testing.attacks.world import World
from prime_core.validation.false_models import changed_policy, int8

Cheaper = Callable[[World], tuple[InferenceEngine, PolicyFiles]]


def running(cheaper: Cheaper, *, honest_proofs: bool = False) -> Forge:
    """Generates with another model.

    Args:
        honest_proofs: log-probabilities and proofs are those of the claimed policy.
    """

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        engine, policy = cheaper(world)
        found = produce(world, [each.dispatch for each in attempts], engine, policy)
        if honest_proofs:
            return reword(world, attempts, [dict(enumerate(rows)) for rows in found])
        return [
            write(world.signer, attempt.dispatch, rows, attempt.meta)
            for attempt, rows in zip(attempts, found, strict=True)
        ]

    return forge


def fewer_layers(world: World) -> tuple[InferenceEngine, PolicyFiles]:
    """The claimed policy without its middle layer: the closest smaller model there is."""
    target = world.folder / "fewer-layers"
    if not target.exists():
        _drop_layer(world.base, target)
    policy = replace(world.base, model_dir=target, weights=_files(target))
    return world.engine(batch_size=_batch(world) + 1), policy


def quantised(world: World) -> tuple[InferenceEngine, PolicyFiles]:
    """The claimed policy with matrices of 8 bits."""
    target = world.folder / "int8"
    if not target.exists():
        changed_policy(world.base, int8, target)
    return world.engine(), replace(world.base, weights=_files(target))


def other_dtype(world: World) -> tuple[InferenceEngine, PolicyFiles]:
    """The claimed policy in another dtype than the run's."""
    dtype = "float32" if world.facts.dtype == "bfloat16" else "bfloat16"
    return world.engine(dtype=dtype), world.base


def _batch(world: World) -> int:
    return int(world.config.engine.params.get("batch_size", 32))


def _files(folder: Path) -> tuple[Path, ...]:
    return tuple(sorted(folder.glob("*.safetensors")))


def _drop_layer(policy: PolicyFiles, target: Path) -> None:
    """A model directory like the policy's, one layer shorter."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(
        policy.model_dir, target, ignore=shutil.ignore_patterns("*.safetensors", "*.index.json")
    )
    config = json.loads((target / "config.json").read_text())
    layers = config["num_hidden_layers"]
    gone = layers // 2
    config["num_hidden_layers"] = layers - 1
    if "layer_types" in config:
        config["layer_types"] = [t for i, t in enumerate(config["layer_types"]) if i != gone]
    (target / "config.json").write_text(json.dumps(config))
    for file in policy.weights:
        tensors = {}
        for name, tensor in load_file(file).items():
            found = re.search(r"\.layers\.(\d+)\.", name)
            layer = int(found[1]) if found else -1
            if layer != gone:
                shifted = layer - (layer > gone)
                kept = name if layer < 0 else name.replace(f".{layer}.", f".{shifted}.", 1)
                tensors[kept] = tensor
        save_file(tensors, target / file.name, metadata={"format": "pt"})
