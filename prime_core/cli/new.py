"""`prime-core new environment | verifier | plugin`: a distribution that passes bronze at once."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def _options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(
        [
            click.argument("name", required=False),
            click.option("--summary", help="One line that says what it is."),
            click.option("--author", help="Who wrote it."),
            click.option("--license", "licence", help="Apache-2.0 (default) or MIT."),
            click.option("--into", type=click.Path(path_type=Path), default=Path(),
                         help="Folder that gets the new folder; default is this one."),
            click.option("--yes", is_flag=True, help="Ask nothing, take defaults."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


@click.group()
def new() -> None:
    """Start a new environment, verifier or plugin, a distribution of its own."""


@new.command()
@_options
def environment(**given: Any) -> None:
    """Start environment NAME: tasks, prompts and a verifier."""
    _create("environment", given)


@new.command()
@_options
def verifier(**given: Any) -> None:
    """Start verifier NAME, which several environments may use."""
    _create("verifier", given)


@new.command()
@click.option("--kind", help="reward, length_budget, data_filter, advantage, tracker, observer.")
@_options
def plugin(kind: str | None, **given: Any) -> None:
    """Start plugin NAME of another kind."""
    from prime_core.publishing.scaffold import PLUGIN_KINDS

    if kind is None and _asks(given):
        kind = click.prompt("Kind of plugin", type=click.Choice(PLUGIN_KINDS))
    if kind is None:
        raise click.UsageError(f"say which: --kind {'|'.join(PLUGIN_KINDS)}")
    if kind not in PLUGIN_KINDS:
        other = kind in ("environment", "verifier")
        hint = f"prime-core new {kind}" if other else f"one of {', '.join(PLUGIN_KINDS)}"
        raise click.BadParameter(f"{kind!r} isn't started by this; use {hint}", param_hint="--kind")
    _create(kind, given)


def _create(kind: str, given: dict[str, Any]) -> None:
    from prime_core.publishing.names import names_of
    from prime_core.publishing.scaffold import LICENCES, Wish, create, providers

    asks = _asks(given)
    if given["name"] is None and not asks:
        raise click.UsageError("give the name")
    name = given["name"] or click.prompt("Name, e.g. word_count")
    names_of(kind, name)  # a bad name is said before more questions

    def answer(key: str, question: str, default: str, **kind_of: Any) -> str:
        if given[key] is not None or not asks:
            return given[key] or default
        return str(click.prompt(question, default=default, show_default=bool(default), **kind_of))

    wish = Wish(
        kind=kind,
        name=name,
        summary=answer("summary", "Summary, one line", ""),
        author=answer("author", "Author", ""),
        licence=answer("licence", "Licence", LICENCES[0], type=click.Choice(LICENCES)),
    )
    made = create(wish, given["into"])
    for other in providers(kind, name):
        click.echo(f"note: {other} provides a plugin of this kind and name already, and installed "
                   "side by side neither can be used: choose another name", err=True)  # fmt: skip
    click.echo(f"made {made}")
    click.echo("next:")
    click.echo(f"  cd {made} && pip install -e '.[test]' hatchling && pytest -q")
    click.echo("  prime-core check . --level bronze")


def _asks(given: dict[str, Any]) -> bool:
    return not given["yes"] and sys.stdin.isatty()
