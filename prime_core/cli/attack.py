"""`prime-core attack`: dishonest nodes against the checks of a prepared run."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from prime_core.testing.attacks.honesty import Noise
    from prime_core.testing.attacks.playing import Result, Unplayed


@click.command()
@click.argument("run", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--attack", "names", multiple=True, metavar="NAME",
              help="Only this attack; may be repeated.")  # fmt: skip
@click.option("--count", type=click.IntRange(min=1), default=8, show_default=True,
              help="Submissions of each attack.")  # fmt: skip
@click.option("--honest", type=click.IntRange(min=0), default=0, metavar="FILES",
              help="Also judge so many honest files, of other engine settings.")  # fmt: skip
@click.option("--list", "listing", is_flag=True, help="List the attacks and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def attack(
    run: Path | None,
    names: tuple[str, ...],
    count: int,
    honest: int,
    listing: bool,
    as_json: bool,
) -> None:
    """Play dishonest nodes against RUN's own checks, in full, and say what was caught.

    RUN is a prepared run with trust = "validate": its directory or run.toml. Nothing in it is
    changed. Exits 1 where something passes that mustn't, or somebody else is harmed, or an honest
    file is rejected, and 2 where an attack breaks; what was found until then is printed.
    """
    from prime_core.testing.attacks.catalogue import ATTACKS, BY_NAME

    if listing:
        for each in ATTACKS:
            print(f"{each.name:<22} {each.fakes} ({', '.join(each.caught_by)}: {each.ending})")
        return
    if run is None:
        raise click.UsageError("name the run to attack, or give --list")
    results: list[Result] = []
    noises: list[Noise] = []
    unplayed: list[Unplayed] = []
    try:
        _play(run, names, count, honest, results, noises, unplayed)
    finally:
        if results or noises or unplayed:
            (_print_json if as_json else _print_tables)(results, noises, unplayed)
    for broken in unplayed:
        if not broken.unfit:
            raise broken.error
    missed = [each for each in results if each.caught < each.files and not BY_NAME[each.attack].why]
    if missed or any(each.harmed for each in results) or any(each.rejected for each in noises):
        sys.exit(1)


def _play(
    run: Path,
    names: Sequence[str],
    count: int,
    honest: int,
    results: list[Result],
    noises: list[Noise],
    unplayed: list[Unplayed],
) -> None:
    """Fill the lists as results come."""
    from prime_core.config.load import load_run
    from prime_core.run.supervisor import run_directory
    from prime_core.store.layout import RUN
    from prime_core.testing.attacks import honesty, playing
    from prime_core.testing.attacks.judging import Judge
    from prime_core.testing.attacks.world import open_world

    with open_world(load_run(run_directory(run) / RUN)) as world:
        chosen = playing.chosen(world, names)
        judge = Judge(world)
        noises += honesty.noise(world, judge, honest) if honest else []
        attempts = playing.base(world, judge, count)
        for played in playing.play_all(world, judge, chosen, attempts):
            if isinstance(played, playing.Result):
                results.append(played)
            else:
                unplayed.append(played)


def _print_json(
    results: Sequence[Result], noises: Sequence[Noise], unplayed: Sequence[Unplayed]
) -> None:
    from prime_core.testing.attacks import table

    said = {
        "attacks": table.values(results),
        "honest": table.values(noises),
        "unplayed": [{"attack": each.attack, "reason": each.error.what} for each in unplayed],
    }
    print(json.dumps(said))


def _print_tables(
    results: Sequence[Result], noises: Sequence[Noise], unplayed: Sequence[Unplayed]
) -> None:
    from prime_core.testing.attacks import table
    from prime_core.testing.attacks.catalogue import BY_NAME

    print(table.text([table.attack_row(each) for each in results]))
    if noises:
        print()
        print(table.text([table.noise_row(each) for each in noises]))
    if harms := [table.harm_row(each) for each in results if BY_NAME[each.attack].hear]:
        print()
        print(table.text(harms))
    for result in results:
        if why := BY_NAME[result.attack].why:
            print(f"\n{result.attack} isn't always caught: {why}")
    for each in unplayed:
        print(f"\n{each.attack} wasn't played: {each.error.what}")
