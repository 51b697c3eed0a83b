"""`prime-core diff`: whether a new version pays stored rollouts as the old one does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prime_core.cli.arguments import parameter
from prime_core.cli.publishing import PUBLISHER, addresses

if TYPE_CHECKING:
    from prime_core.publishing.comparing import Compared


@click.command()
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option("--rollouts", required=True, metavar="FILE",
              type=click.Path(path_type=Path, dir_okay=False, exists=True),
              help="JSON lines with task and completion, or of the observer samples.")  # fmt: skip
@click.option("--from", "url", metavar="URL", help="Index of NAME==V.")
@PUBLISHER
@click.option("--environment", metavar="NAME", help="Which, where there are several.")
@click.option("--with", "params", multiple=True, metavar="KEY=VALUE",
              help="Parameter of the environment, as in TOML; may be repeated.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def diff(
    old: str,
    new: str,
    rollouts: Path,
    url: str | None,
    publishers: tuple[str, ...],
    environment: str | None,
    params: tuple[str, ...],
    as_json: bool,
) -> None:
    """Score stored rollouts with two versions: NAME==V of an index, wheels or folders.

    Exits 1 where rewards drift between versions that don't differ by a major bump (below 1.0: a
    minor one).
    """
    from prime_core.publishing.comparing import compare
    from prime_core.publishing.resolve import Policy

    found = compare(
        old,
        new,
        rollouts,
        url=url,
        policy=Policy(addresses(publishers)),
        environment=environment,
        params=dict(parameter(each) for each in params),
    )
    if as_json:
        names = {name: getattr(found, name) for name in ("name", "old", "new", "environment")}
        report = {**names, "allowed": found.allowed, **found.drift.to_json()}
        click.echo(json.dumps(report, indent=2))
    else:
        click.echo(_text(found))
    if found.drift.drifts and not found.allowed:
        raise SystemExit(1)


def _text(found: Compared) -> str:
    drift = found.drift
    rank = "-" if drift.rank_correlation is None else f"{drift.rank_correlation:.4f}"
    lines = [
        f"{found.name} {found.old} -> {found.new}, environment {found.environment}",
        f"  {drift.rollouts} rollouts of {drift.tasks} tasks in {drift.groups} groups",
        f"  scores that differ    {drift.changed}",
        f"  solved only now       {drift.gained}",
        f"  solved only before    {drift.lost}",
        f"  without a value       {drift.unscored_old} -> {drift.unscored_new}",
        f"  rank correlation      {rank}",
        f"  advantage, mean move  {drift.advantage_change:.4f}",
        f"  groups with signal    {drift.signal_old} -> {drift.signal_new}",
        f"  groups that flip      {drift.flipped_groups}",
    ]
    lines += [f"  tasks one lacks       {_few(drift.missing)}"] if drift.missing else []
    lines += [f"  tasks both lack       {_few(drift.unknown)}"] if drift.unknown else []
    lines += [f"  tasks reworded        {_few(drift.reworded)}"] if drift.reworded else []
    lines += [
        f"    {each.task}: {each.changed} of {each.rollouts} differ, "
        f"solved {each.passes_old} -> {each.passes_new}"
        for each in drift.worst
    ]
    if not drift.drifts:
        verdict = "no drift"
    elif found.allowed:
        verdict = "drift, which a major bump allows"
    else:
        verdict = f"drift, and {found.new} is no major bump of {found.old}"
    return "\n".join([*lines, verdict])


def _few(names: tuple[str, ...]) -> str:
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(names[:5])}{more}"
