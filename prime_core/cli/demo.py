"""`prime-core demo`: the whole road in one command."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs/demo"),
    show_default=True,
    help="Empty directory for the model, the run and the plots.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Run seed.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=1),
    default=None,
    help="Stop training after about so many minutes, warm-up included.  [default: 400 steps]",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON line.")
def demo(out: Path, seed: int, minutes: float | None, as_json: bool) -> None:
    """Train a tiny model on two-digit addition, start to finish, on two CPU cores.

    Builds a model of a million parameters, warms it up with supervised steps, then lets a
    trainer, a worker and an intake process improve it by asynchronous GRPO, and measures it on
    held-out tasks before and after.
    """
    from prime_core.run.demo import run_demo

    result = run_demo(out, seed=seed, minutes=minutes)
    if as_json:
        click.echo(json.dumps(result.as_json()))
        return
    total = sum(result.outcomes.values())
    fates = ", ".join(f"{name} {count}" for name, count in sorted(result.outcomes.items()))
    click.echo(f"""
held-out accuracy  {result.accuracy_before:.3f} -> {result.accuracy_after:.3f}  (sampled, \
{result.held_out_tasks} tasks)
                   {result.greedy_before:.3f} -> {result.greedy_after:.3f}  (greedy)
steps              {result.steps} in {result.seconds["train"]:.0f} s, after \
{result.seconds["warmup"]:.0f} s of warm-up
rollouts           {total}: {fates}

plot               {result.files["png"]}
page               {result.files["html"]}
trace              {result.files["trace"]}  (open it in Perfetto)
run                {result.files["run"]}

next               prime-core why {result.files["run"]} 10-worker-0-0-0/0
                   prime-core report {result.files["run"]}""")
