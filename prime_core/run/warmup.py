"""Builds the demo's tiny model and warms it up by supervised steps, in a process of its own.

GRPO needs something to reinforce: from about 0.25 sampled accuracy on it learns, below that the
groups carry no signal. Reads pairs of prompt and answer from a JSON file, trains until the sampled
accuracy on training tasks passes the target, and writes the weights back into the model directory.
"""

from __future__ import annotations

import json
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.run.lifeline import die_with_parent

if TYPE_CHECKING:
    import torch

LABEL_IGNORED = -100  # what torch's cross_entropy leaves out


@dataclass(frozen=True)
class WarmupPlan:
    """How the warm-up trains.

    Attributes:
        target: sampled accuracy on training tasks at which it stops.
        lr, batch: AdamW learning rate and sequences per step.
        check_every: steps between accuracy checks; the rise is sharp, so this is small.
        max_steps: RunError beyond, as nothing could be reinforced.
    """

    target: float = 0.3
    lr: float = 1e-3
    batch: int = 128
    check_every: int = 10
    max_steps: int = 1200
    checked_tasks: int = 256


@dataclass(frozen=True)
class WarmupResult:
    """Steps taken, the last sampled accuracy on training tasks, and seconds spent."""

    steps: int
    accuracy: float
    seconds: float


def encode(pairs: list[tuple[list[int], list[int]]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels [B, T] of (prompt, answer) pairs; the prompt isn't learned."""
    import torch

    width = max(len(prompt) + len(answer) for prompt, answer in pairs)
    ids_BT = torch.zeros(len(pairs), width, dtype=torch.long)
    labels_BT = torch.full_like(ids_BT, LABEL_IGNORED)
    for row, (prompt, answer) in enumerate(pairs):
        end = len(prompt) + len(answer)
        ids_BT[row, :end] = torch.tensor(prompt + answer)
        labels_BT[row, len(prompt) : end] = torch.tensor(answer)
    return ids_BT, labels_BT


def sampled_accuracy(
    model: Any, pairs: list[tuple[list[int], list[int]]], generator: torch.Generator
) -> float:
    """Share of pairs whose answer is sampled token by token at temperature 1.

    Sampling stops at the first wrong token, so one teacher-forced pass decides: the i-th token is
    drawn under the right prefix, and the answer is right iff every draw is.
    """
    import torch

    ids_BT, labels_BT = encode(pairs)
    with torch.inference_mode():
        logits_BTV = model(input_ids=ids_BT, use_cache=False).logits[:, :-1]
    probs = torch.softmax(logits_BTV.float(), dim=-1)
    drawn = torch.multinomial(probs.flatten(0, 1), 1, generator=generator).view(probs.shape[:2])
    wanted = labels_BT[:, 1:]
    right = (drawn == wanted) | (wanted == LABEL_IGNORED)
    return float(right.all(dim=1).float().mean())


def warm_up(
    model: Any, pairs: list[tuple[list[int], list[int]]], plan: WarmupPlan, seed: int
) -> WarmupResult:
    """Train in place until the sampled accuracy reaches the target."""
    import torch

    started = time.monotonic()
    order = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=plan.lr, betas=(0.9, 0.99))
    model.train()
    accuracy = 0.0
    for step in range(1, plan.max_steps + 1):
        ids_BT, labels_BT = encode(order.sample(pairs, min(plan.batch, len(pairs))))
        logits_BTV = model(input_ids=ids_BT, use_cache=False).logits[:, :-1]
        loss = torch.nn.functional.cross_entropy(
            logits_BTV.flatten(0, 1), labels_BT[:, 1:].flatten(), ignore_index=LABEL_IGNORED
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % plan.check_every == 0:
            checked = order.sample(pairs, min(plan.checked_tasks, len(pairs)))
            accuracy = sampled_accuracy(model, checked, generator)
            print(json.dumps({"step": step, "loss": loss.item(), "accuracy": accuracy}), flush=True)  # noqa: T201
            if accuracy >= plan.target:
                return WarmupResult(step, accuracy, time.monotonic() - started)
    raise RunError(
        f"warm-up reached a sampled accuracy of {accuracy:.2f}, not {plan.target}, in "
        f"{plan.max_steps} steps: GRPO would have nothing to reinforce",
        fix="try another --seed",
    )


def main(job_file: Path) -> None:
    """Run the job that `prime_core.run.demo` wrote; writes weights and `result.json`."""
    import torch

    job = json.loads(job_file.read_text())
    die_with_parent(job["supervisor"])
    model_dir = Path(job["model_dir"])
    torch.set_num_threads(job["threads"])
    torch.manual_seed(job["seed"])
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model

    build_tiny_model(
        model_dir,
        seed=job["seed"],
        symbols=tuple(job["symbols"]),
        hidden=128,
        layers=4,
        heads=4,
        vocab=16,
        chat_template=PLAIN_TEMPLATE,
        max_positions=64,
    )
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32)
    end = [tokenizer.eos_token_id]
    pairs = [
        (
            tokenizer.encode(prompt, add_special_tokens=False),
            tokenizer.encode(answer, add_special_tokens=False) + end,
        )
        for prompt, answer in job["pairs"]
    ]
    result = warm_up(model, pairs, WarmupPlan(target=job["target"]), job["seed"])
    model.save_pretrained(model_dir)
    Path(job["result"]).write_text(json.dumps(result.__dict__))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
