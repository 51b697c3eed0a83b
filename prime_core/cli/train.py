"""`prime-core train`: check a config, prepare its run directory, and supervise its processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click


@click.command()
@click.argument("config", type=click.Path(path_type=Path), metavar="run.toml")
@click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override one key.")
@click.option("--resume", is_flag=True, help="Go on with the run in its directory.")
@click.option("--dry-run", is_flag=True, help="Write the resolved config, print estimates, stop.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=None,
    help="With --dry-run: where the resolved config goes.",
)
@click.option("--json", "as_json", is_flag=True, help="End with one JSON line.")
def train(
    config: Path,
    overrides: tuple[str, ...],
    resume: bool,
    dry_run: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """Run a config on this machine: trainer, intake and workers, each a process of its own."""
    if dry_run:
        from prime_core.cli.dry_run import dry_run as show

        show(config, overrides, out)
        return
    from prime_core.run.configuration import load_run_config
    from prime_core.run.supervisor import supervise

    if resume and (config.parent / "lock.json").is_file() and config.name == "run.toml":
        # the run's own config: its directory is the one that it lies in, also after a move
        overrides = (f"run.dir={json.dumps(str(config.resolve().parent))}", *overrides)
    # a prepared run holds its model: what it was made from may be gone
    loaded = load_run_config(config, overrides, check_files=not resume)
    summary = supervise(loaded, resume=resume)
    if as_json:
        click.echo(json.dumps(summary))
    else:
        click.echo(closing(summary))


def closing(summary: Mapping[str, Any]) -> str:
    """What a finished run says last: what came out, where it lies, and what to ask next."""
    rows = [
        (f"version {version}", _accuracy(found))
        for version, found in summary["evaluations"].items()
    ]
    fates = ", ".join(f"{name} {count}" for name, count in sorted(summary["outcomes"].items()))
    restarts = f", {summary['restarts']} restarts" if summary["restarts"] else ""
    run = summary["run"]
    rows += [
        ("steps", f"{summary['steps']}; this command took {summary['seconds']:.0f} s{restarts}"),
        ("rollouts", f"{sum(summary['outcomes'].values())}: {fates}"),
        ("run", run),
        ("trace", f"{summary['trace']}  (open it in Perfetto)"),
        ("next", f"prime-core report {run}"),
        ("", f"prime-core outcomes {run}"),
    ]
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


def _accuracy(found: Mapping[str, Any]) -> str:
    kinds = ((kind, found.get(kind)) for kind in ("sampled", "greedy"))
    scores = [f"{value:.3f} {kind}" for kind, value in kinds if value is not None]
    return f"{', '.join(scores)}  (mean score of {found['tasks']} held-out tasks)"
