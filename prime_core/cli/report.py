"""`prime-core report`: what a run took, in the terms of the INTELLECT-2 paper."""

from __future__ import annotations

import json
from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(exists=True, path_type=Path), metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option(
    "--plot",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Also write run.png and run.html into this directory.",
)
def report(run: Path, as_json: bool, plot: Path | None) -> None:
    """Timings, FLOP ratio, lag and outcomes of a run, finished or not."""
    from prime_core.run.plots import plot_run
    from prime_core.run.report import MEANINGS
    from prime_core.run.report import report as read_report
    from prime_core.run.supervisor import run_directory

    run_dir = run_directory(run)
    found = read_report(run_dir)
    if plot is not None:
        plot_run(run_dir, plot)
    if as_json:
        click.echo(json.dumps(found.as_json()))
        return
    click.echo(f"{'seconds':<14}{'events':>8}{'median':>10}{'mean':>10}{'longest':>10}")
    for name, timing in found.timings.items():
        click.echo(
            f"{name.replace('_', ' '):<14}{timing.count:>8}{timing.median:>10.3f}"
            f"{timing.mean:>10.3f}{timing.longest:>10.3f}"
        )
    click.echo()
    for name, meaning in MEANINGS.items():
        if name in found.timings:
            click.echo(f"  {name.replace('_', ' ')}: {meaning}")
    click.echo()
    ratio, made = found.flop_ratio, found.generated_per_trained
    facts = {
        "steps trained": str(found.steps),
        "training FLOPs": f"{found.train_flops:.3e}",
        "inference FLOPs": f"{found.inference_flops:.3e}",
        "inference / training": "-" if ratio is None else f"{ratio:.2f}",
        "generated / trained": "-" if made is None else f"{made:.2f} rollouts",
        "tokens/s": "-" if found.tokens_per_s is None else f"{found.tokens_per_s:.0f}",
        "idle": ", ".join(f"{name} {share:.0%}" for name, share in found.idle_share.items()),
        "lag": ", ".join(f"{lag}: {count} rollouts" for lag, count in found.lag.items()),
        "outcomes": ", ".join(f"{name} {n}" for name, n in sorted(found.outcomes.items())),
    }
    for name, value in facts.items():
        click.echo(f"{name:<22}{value}")
