"""`prime-core config explain | diff | schema`: what a run config says, and what it may say."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pydantic import BaseModel

    from prime_core.config.explain import ParamsOf
    from prime_core.config.load import LoadedConfig
    from prime_core.config.locate import KeyPath
    from prime_core.config.sections import PluginChoice

FILE = click.Path(path_type=Path)
SET = click.option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="Override a key.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def config() -> None:
    """Explain, compare or describe run configs."""


@config.command()
@click.argument("path", type=FILE, metavar="run.toml")
@click.argument("key")
@SET
@JSON
def explain(path: Path, key: str, overrides: tuple[str, ...], as_json: bool) -> None:
    """Say what KEY is: value, origin, type, default, help. KEY may be a whole table."""
    from dataclasses import asdict

    from prime_core.config.explain import explain as explain_key

    loaded = _load(path, overrides)
    found = explain_key(loaded, key, _params_of(loaded))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
        return
    for each in found:
        click.echo(f"{each.key} = {each.value}")
        click.echo(f"  origin   {each.origin}")
        click.echo(f"  type     {each.type}")
        click.echo(f"  default  {each.default}")
        click.echo(f"  help     {each.help}")


@config.command()
@click.argument("left", type=FILE, metavar="A")
@click.argument("right", type=FILE, metavar="B")
@JSON
def diff(left: Path, right: Path, as_json: bool) -> None:
    """Print the keys whose values differ, with origins. A and B: run.toml or run directories."""
    from dataclasses import asdict

    from prime_core.config.explain import compare

    found = compare(_load(left, ()), _load(right, ()))
    if as_json:
        click.echo(json.dumps([asdict(each) for each in found], indent=2))
        return
    for each in found:
        click.echo(each.key)
        click.echo(f"  - {each.left}  ({each.left_origin})")
        click.echo(f"  + {each.right}  ({each.right_origin})")
    if not found:
        click.echo("no difference")


@config.command()
@click.option("--markdown", "as_markdown", is_flag=True, help="The reference page instead.")
def schema(as_markdown: bool) -> None:
    """Print the JSON schema of a run config, or its reference page."""
    from prime_core.config import reference

    if as_markdown:
        click.echo(reference.markdown(), nl=False)
    else:
        click.echo(json.dumps(reference.json_schema(), indent=2))


def _load(path: Path, overrides: Sequence[str]) -> LoadedConfig:
    """Load without looking at files and plugins: what a config says doesn't depend on them."""
    from prime_core.config.load import load

    return load(path / "run.toml" if path.is_dir() else path, overrides, check_files=False)


def _params_of(loaded: LoadedConfig) -> ParamsOf:
    """Parameters' models by the hub; None for a plugin under another interpreter."""
    from prime_core.hub import Hub, selections

    hub = Hub.discover(loaded.config.plugins.block)
    selected = {each.where: each for each in selections(loaded.config)}

    def params_of(path: KeyPath, choice: PluginChoice) -> type[BaseModel] | None:
        where = ".".join(str(part) for part in path)
        selection = selected[where]
        if selection.python is not None:
            return None
        return hub.spec(selection.kind, choice.use, choice.version).params

    return params_of
