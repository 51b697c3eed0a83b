"""`prime-core env create | list | remove`: virtual environments for environment hosts."""

from __future__ import annotations

import json
from pathlib import Path

import click

DIR = click.option(
    "--dir",
    "root",
    type=click.Path(path_type=Path),
    help="Folder that holds them; default is prime-core/envs in your data directory.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def env() -> None:
    """Virtual environments for environment hosts."""


@env.command()
@click.argument("name")
@click.option("--requirement", "-r", "requirements", multiple=True, metavar="PKG/PATH",
              help="Distribution to install; may be repeated.")  # fmt: skip
@click.option("--python", "base", type=click.Path(path_type=Path),
              help="Interpreter to make it with; default is the running one.")  # fmt: skip
@click.option("--constraint", "-c", "constraints", metavar="FILE",
              type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Constraints file for pip.")  # fmt: skip
@DIR
@JSON
def create(
    name: str,
    requirements: tuple[str, ...],
    base: Path | None,
    constraints: Path | None,
    root: Path | None,
    as_json: bool,
) -> None:
    """Make virtual environment NAME with this prime-core and the requirements in it."""
    from prime_core.hosting import virtualenvs

    made = virtualenvs.create(
        root or virtualenvs.default_root(),
        name,
        requirements,
        base=base,
        constraints=constraints,
    )
    if as_json:
        click.echo(json.dumps(made.to_json(), indent=2))
        return
    click.echo(f"made {made.name}: Python {made.python_version}, {len(made.packages)} packages")
    click.echo(f"plugins: {', '.join(made.plugins) or 'none'}")
    click.echo("put this line into the environment's table of the run config:")
    click.echo(f"python = {json.dumps(made.python)}")


@env.command("list")
@DIR
@JSON
def list_environments(root: Path | None, as_json: bool) -> None:
    """List the virtual environments, with the line for the run config."""
    from prime_core.hosting import virtualenvs

    found = virtualenvs.existing(root or virtualenvs.default_root())
    if as_json:
        click.echo(json.dumps({"envs": [each.to_json() for each in found]}, indent=2))
        return
    for each in found:
        click.echo(f"{each.name}  python = {json.dumps(each.python)}")
        click.echo(f"    {', '.join(each.requirements) or 'no requirements'}")
    if not found:
        click.echo("no virtual environments; make one: prime-core env create NAME -r PACKAGE")


@env.command()
@click.argument("name")
@DIR
@JSON
def remove(name: str, root: Path | None, as_json: bool) -> None:
    """Delete virtual environment NAME."""
    from prime_core.hosting import virtualenvs

    path = virtualenvs.remove(root or virtualenvs.default_root(), name)
    click.echo(json.dumps({"removed": str(path)}) if as_json else f"removed {path}")
