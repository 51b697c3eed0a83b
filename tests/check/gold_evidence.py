"""Makes the evidence of level gold for a member: a tiny warmed-up model, its profile, a short run.

Run it with `python tests/check/gold_evidence.py environments/math` to write the member's evidence
folder anew; `make proofs` does the same with a copy. The model is thrown away: what is proven is
that the environment's reward can be learned, by any model that sometimes earns it.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.check.checks_file import read_checks_file


@dataclass(frozen=True)
class Recipe:
    """The tiny model of one member.

    Attributes:
        target: share of sampled completions that are right where the warm-up ends.
    """

    target: float
    hidden: int
    layers: int


RECIPES = {
    "environments/arithmetic": Recipe(0.3, 128, 4),
    # Divisors and remainders are too hard for so small a model, but some answers are more frequent.
    "environments/math": Recipe(0.08, 64, 2),
}
COMPLETIONS = 8000  # gold completions that the warm-up draws from
POSITIONS = 512  # what `prime-core profile` asks for besides the prompt


def warmed_model(folder: Path, source: Path, recipe: Recipe, seed: int = 0) -> Path:
    """A tiny model that sometimes earns the reward of the source's first case."""
    import torch
    from transformers import AutoModelForCausalLM

    from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model, build_tokenizer
    from prime_core.run.warmup import WarmupPlan, warm_up

    pairs = _pairs(source)
    symbols = sorted({char for pair in pairs for text in pair for char in text})
    model_dir = build_tiny_model(
        folder, seed=seed, symbols=symbols, hidden=recipe.hidden, layers=recipe.layers,
        heads=4, chat_template=PLAIN_TEMPLATE, max_positions=POSITIONS,
    )  # fmt: skip
    tokenizer = build_tokenizer(model_dir, symbols=symbols, chat_template=PLAIN_TEMPLATE)
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    end = [tokenizer.eos_token_id]
    tokens = [(tokenizer.encode(prompt), tokenizer.encode(said) + end) for prompt, said in pairs]
    print(warm_up(model, tokens, WarmupPlan(target=recipe.target, batch=64), seed), flush=True)
    model.save_pretrained(model_dir)
    return model_dir


def _pairs(source: Path) -> list[tuple[str, str]]:
    """(prompt, gold completion) of tasks of the first case."""
    from prime_core.config.sections import EnvironmentChoice
    from prime_core.hub import Hub, RunContext

    case = read_checks_file(source).cases[0]
    choice = EnvironmentChoice.model_validate(
        {"use": case.plugin.partition(".")[2], "with": case.params}
    )
    environment: Any = Hub.discover().make("environment", choice, RunContext.from_environment())
    tasks = list(environment.tasks())
    chosen = random.Random(0).sample(tasks, min(COMPLETIONS, len(tasks)))
    return [
        ("".join(each.content for each in environment.render(task, None)), environment.gold(task))
        for task in chosen
    ]


def prove(source: Path, scratch: Path, recipe: Recipe) -> None:
    """Write evidence/profile.json, training.json and replay.json into the source folder.

    The run config is evidence/training.toml, which names the model and the run by paths in the
    scratch folder, where all commands run.
    """
    source = source.resolve()
    model = warmed_model(scratch / "tiny-model", source, recipe)
    config = scratch / "training.toml"
    config.write_text((source / "evidence/training.toml").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "prime_core", "check", str(source), "--prove"]
    for options in (
        ["replay"],
        ["profile", "--model", model.name],
        ["training", "--config", config.name],
    ):
        subprocess.run(
            [*command, *options],
            cwd=scratch,
            check=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="prime-gold-") as place:
        prove(Path(sys.argv[1]), Path(place), RECIPES[sys.argv[1].rstrip("/")])
