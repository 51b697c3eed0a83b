"""What a run will need, from its config and the headers of its model: memory, tokens, files, disk.

Called by the dry run. Upper bounds where they can be told, "about" where they are rules of thumb;
each line shows its formula.
"""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_core.config.sections import RunConfig
from prime_core.run.model_shape import ModelShape, read_shape

# float32 master weights 4, gradients 4, AdamW's two moments 8
TRAINER_BYTES = 16
# a checkpoint keeps all of that but the gradients
CHECKPOINT_BYTES = 12
# bytes of activations per token, layer and hidden unit at two bytes a number, attention without its
# score matrix: Korthikanti et al. 2022 (arXiv 2205.05198), equation 2, first term
ACTIVATION_BYTES = 34
# of the vocabulary per token: float32 logits and their gradient
LOGIT_BYTES = 8
BATCH_SIZE = 32  # of the engine `transformers`, where the config doesn't say
FILES_A_SUBMISSION = 4  # dispatch, rollouts, statement, receipt
FILES_A_POLICY = 3  # header, one shard, seal
_WIDTH = {"float32": 4, "bfloat16": 2}


@dataclass(frozen=True, slots=True)
class Estimate:
    """One line of the estimates; `amount` in the unit that `text` shows."""

    name: str
    amount: int
    text: str
    how: str


def estimates(config: RunConfig) -> list[Estimate]:
    """All estimates; those that need the model's shape are left out where it can't be read."""
    shape = read_shape(config)
    found = [*_work(config)]
    if shape is not None:
        found += [*_memory(config, shape), *_disk(config, shape)]
    return found


def _work(config: RunConfig) -> list[Estimate]:
    engine, trainer = config.engine, config.trainer
    limit = engine.token_limit(engine.node_class)
    rollouts = trainer.groups_per_step * trainer.group_size
    batch = f"{trainer.groups_per_step} groups x {trainer.group_size}"
    generated = rollouts * limit
    trained = rollouts * (engine.max_prompt_tokens + limit)
    submissions = math.ceil(trainer.groups_per_step / engine.groups_per_submission)
    files = submissions * FILES_A_SUBMISSION + 1 + FILES_A_POLICY
    more = "; more where an online filter drops groups" if config.filters.online else ""
    return [
        Estimate("rollouts per step", rollouts, f"{rollouts:,}", batch),
        Estimate(
            "generated tokens per step",
            generated,
            f"at most {generated:,}",
            f"{batch} x {limit}{more}",
        ),
        Estimate(
            "trained tokens per step",
            trained,
            f"at most {trained:,}",
            f"{batch} x ({engine.max_prompt_tokens} prompt + {limit})",
        ),
        Estimate(
            "files per step",
            files,
            f"at least {files}",
            f"{submissions} submissions x {FILES_A_SUBMISSION}, closed.json, "
            f"{FILES_A_POLICY} of the policy",
        ),
        Estimate(
            "files of the run",
            files * trainer.steps,
            f"at least {files * trainer.steps:,}",
            f"{files} x {trainer.steps} steps",
        ),
    ]


def _memory(config: RunConfig, shape: ModelShape) -> list[Estimate]:
    trainer, engine = config.trainer, config.engine
    states = shape.parameters * TRAINER_BYTES // trainer.ranks
    how = f"{shape.parameters:,} x {TRAINER_BYTES} B (float32 weights, gradients, AdamW)"
    if config.loss.kl_coef > 0:
        states += shape.parameters * _WIDTH[config.model.dtype] // trainer.ranks
        how += f" + {_WIDTH[config.model.dtype]} B (version 0, for the KL term)"
    if trainer.ranks > 1:
        how += f" / {trainer.ranks} ranks"
    per_unit = 2 if trainer.activation_checkpointing else ACTIVATION_BYTES
    activations = trainer.pack_tokens * (
        shape.layers * shape.hidden * per_unit * _WIDTH[trainer.param_dtype] // 2
        + shape.vocabulary * LOGIT_BYTES
    )
    batch = int(engine.params.get("batch_size", BATCH_SIZE))
    tokens = engine.max_prompt_tokens + engine.token_limit(engine.node_class)
    width = _WIDTH[config.model.dtype]
    weights = shape.parameters * width
    cache = batch * tokens * shape.layers * 2 * shape.kv_width * width
    return [
        Estimate(
            "model parameters", shape.parameters, f"{shape.parameters:,}", f"from {shape.source}"
        ),
        Estimate("trainer states per rank", states, _size(states), how),
        Estimate(
            "trainer activations per rank",
            activations,
            f"about {_size(activations)}",
            f"a micro-batch of {trainer.pack_tokens} tokens, logits included",
        ),
        Estimate(
            "engine per worker",
            weights + cache,
            f"at most {_size(weights + cache)}",
            f"weights {_size(weights)} + KV cache {_size(cache)} ({batch} x {tokens} tokens), "
            f"{engine.workers} workers",
        ),
    ]


def _disk(config: RunConfig, shape: ModelShape) -> list[Estimate]:
    kept = min(config.store.keep_policies, config.trainer.steps + 1)
    policy = shape.parameters * _WIDTH[config.model.dtype]
    checkpoint = shape.parameters * CHECKPOINT_BYTES
    # a new one is whole before the oldest goes
    checkpoints = (config.trainer.keep_checkpoints + 1) * checkpoint
    return [
        Estimate(
            "disk for policies",
            kept * policy,
            _size(kept * policy),
            f"{kept} versions x {_size(policy)}",
        ),
        Estimate(
            "disk for checkpoints",
            checkpoints,
            f"at most {_size(checkpoints)}",
            f"({config.trainer.keep_checkpoints} kept + 1 being written) x {_size(checkpoint)}",
        ),
    ]


def warnings(config: RunConfig, found: Sequence[Estimate]) -> list[str]:
    """What this machine may not have enough of, and what the config will waste."""
    amounts = {each.name: each.amount for each in found}
    trainer, engine = config.trainer, config.engine
    said = []
    memory = trainer.ranks * (
        amounts.get("trainer states per rank", 0) + amounts.get("trainer activations per rank", 0)
    ) + engine.workers * amounts.get("engine per worker", 0)
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if memory > total:
        said.append(f"about {_size(memory)} of memory wanted, this machine has {_size(total)}")
    disk = amounts.get("disk for policies", 0) + amounts.get("disk for checkpoints", 0)
    free = shutil.disk_usage(_existing(config.run.dir)).free
    if disk > free:
        said.append(f"about {_size(disk)} of disk wanted, {_size(free)} are free")
    threads = trainer.ranks * trainer.threads + engine.workers * engine.threads
    cores = os.cpu_count() or 1
    if threads > cores:
        said.append(f"{threads} torch threads on {cores} cores will wait for each other")
    if engine.groups_per_submission > trainer.groups_per_step:
        said.append(
            f"a submission of {engine.groups_per_submission} groups is more than the "
            f"{trainer.groups_per_step} of a step: what is left over may never train"
        )
    if trainer.warmup_steps >= trainer.steps * trainer.optimizer_steps:
        said.append(
            f"warmup_steps {trainer.warmup_steps} covers the whole run: lr is never reached"
        )
    return said


def _existing(path: Path) -> Path:
    absolute = path.expanduser().absolute()
    return next(part for part in (absolute, *absolute.parents) if part.exists())


def _size(amount: int) -> str:
    value = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"
