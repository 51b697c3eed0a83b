"""`train --dry-run`: the resolved config with origins, and estimates; starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click


def dry_run(path: Path, overrides: Sequence[str] = (), out: Path | None = None) -> None:
    """Check a config with its plugins, write it resolved, print what the run will need.

    A config that states its model's shape may be tried where neither the model nor its data are:
    files that aren't there are then warnings.

    Args:
        out: file that the resolved config goes to; standard output where None.

    Raises:
        ConfigError: with everything that is wrong.
    """
    from prime_core.config import files
    from prime_core.config.resolved import render_resolved, write_resolved
    from prime_core.run.configuration import load_run_config
    from prime_core.run.estimates import estimates, warnings

    loaded = load_run_config(path, overrides, check_files=False)
    elsewhere = loaded.config.model.shape is not None and files.model_dir(loaded.config) is None
    if not elsewhere:
        loaded = load_run_config(path, overrides)
    if out is None:
        click.echo(render_resolved(loaded))
    else:
        write_resolved(loaded, out)
        click.echo(f"resolved config: {out}\n")
    found = estimates(loaded.config)
    click.echo("estimates")
    width = max(len(each.name) for each in found)
    for each in found:
        click.echo(f"  {each.name:<{width}}  {each.text}  ({each.how})")
    if not any(each.name == "model parameters" for each in found):
        click.echo("  memory and disk: unknown, the headers of the model's files don't tell")
    for absent in files.missing(loaded.config) if elsewhere else ():
        click.echo(f"warning: {absent.what}")
    for warning in warnings(loaded.config, found):
        click.echo(f"warning: {warning}")
