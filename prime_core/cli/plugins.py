"""`prime-core plugins list | show | doctor`: what is installed, what it takes, what is wrong.

`list` imports no plugin, `show` imports the one it's asked for, `doctor` imports each in a process
of its own.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

CONFIG = click.option(
    "--config",
    "config_path",
    type=click.Path(path_type=Path),
    help="Run config whose [plugins] block and choices count.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.group()
def plugins() -> None:
    """List, show or diagnose installed plugins."""


@plugins.command("list")
@click.option("--kind", default="", help="Only this kind, e.g. environment.")
@CONFIG
@JSON
def list_plugins(kind: str, config_path: Path | None, as_json: bool) -> None:
    """List every installed plugin from metadata; imports none."""
    from prime_core.hub import Hub
    from prime_core.hub.describe import list_text, record_json
    from prime_core.hub.kinds import KINDS

    if kind and kind not in KINDS:
        raise click.BadParameter(f"{kind!r} is not one of {', '.join(KINDS)}", param_hint="--kind")
    config = _config(config_path)
    hub = Hub.discover(config.plugins.block if config else ())
    records = [record for record in hub.records() if kind in ("", record.kind)]
    if as_json:
        _print_json({"plugins": [record_json(hub, record) for record in records]})
    else:
        click.echo(list_text(hub, records))


@plugins.command("show")
@click.argument("plugin", metavar="[KIND.]NAME[@DISTRIBUTION]")
@JSON
def show_plugin(plugin: str, as_json: bool) -> None:
    """Show a plugin's summary, distribution and parameters; imports its module."""
    from prime_core.hub import Hub
    from prime_core.hub.describe import find_by_text, show_json, show_text
    from prime_core.hub.kinds import OBSERVER
    from prime_core.hub.params import parameters

    hub = Hub.discover()
    record = find_by_text(hub, plugin)
    hub.check(record)
    with contextlib.redirect_stdout(sys.stderr):  # what a plugin prints must not spoil the JSON
        hub.load(record)
        spec = None if record.kind == OBSERVER else hub.spec_of(record)
    described = parameters(spec.params) if spec else []
    if as_json:
        _print_json(show_json(record, spec, described))
    else:
        click.echo(show_text(record, spec, described))


@plugins.command("doctor")
@CONFIG
@JSON
@click.option(
    "--timeout", default=120.0, show_default=True, help="Seconds that one plugin may take to load."
)
@click.pass_context
def doctor(context: click.Context, config_path: Path | None, as_json: bool, timeout: float) -> None:
    """Try plugins, each in a process of its own; exit 1 if one failed.

    With --config: those that the run config selects, with their parameters. Without: every
    installed one.
    """
    from prime_core.hub import Hub, selections
    from prime_core.hub.describe import doctor_text
    from prime_core.hub.diagnosis import diagnose

    config = _config(config_path)
    hub = Hub.discover(config.plugins.block if config else ())
    found = diagnose(hub, selections(config) if config else None, timeout_s=timeout)
    failed = sum(each.status == "failed" for each in found)
    if as_json:
        _print_json({"plugins": [each.to_json() for each in found], "failed": failed})
    else:
        click.echo(doctor_text(found))
        click.echo(f"\n{len(found)} plugins, {failed} failed")
    if failed:
        context.exit(1)


def _config(path: Path | None) -> RunConfig | None:
    """The run config without a look at its plugins: the doctor says more of them than an error."""
    if path is None:
        return None
    from prime_core.config.load import load

    return load(path, check_files=False).config


def _print_json(value: object) -> None:
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
