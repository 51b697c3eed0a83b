"""`train --dry-run`: the resolved config with origins, and estimates; starts nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prime_core.api.errors import ConfigError

if TYPE_CHECKING:
    from prime_core.config.load import LoadedConfig


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

    elsewhere = False
    try:
        loaded = load_run_config(path, overrides)
    except ConfigError as problems:
        loaded, elsewhere = _without_files(path, overrides, problems), True
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


def _without_files(path: Path, overrides: Sequence[str], problems: ConfigError) -> LoadedConfig:
    """The config of a model that is elsewhere; `problems` where that isn't all that is wrong."""
    from prime_core.config import files
    from prime_core.run.configuration import load_run_config

    try:
        loaded = load_run_config(path, overrides, check_files=False)
    except ConfigError:
        raise problems from None
    if loaded.config.model.shape is None or files.model_dir(loaded.config) is not None:
        raise problems
    return loaded
