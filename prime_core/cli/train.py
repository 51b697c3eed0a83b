"""`prime-core train`: check a config, prepare its run directory, and supervise its processes."""

from __future__ import annotations

from pathlib import Path

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

    # a prepared run holds its model: what it was made from may be gone
    loaded = load_run_config(config, overrides, check_files=not resume)
    summary = supervise(loaded, resume=resume)
    if as_json:
        import json

        click.echo(json.dumps(summary))
