"""`prime-core attack`: dishonest nodes against the checks of a prepared run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command()
@click.argument("run", type=click.Path(exists=True, path_type=Path))
@click.option("--attack", "names", multiple=True, metavar="NAME",
              help="Only this attack; may be repeated.")  # fmt: skip
@click.option("--count", type=click.IntRange(min=1), default=8, show_default=True,
              help="Submissions of each attack.")  # fmt: skip
@click.option("--honest", type=click.IntRange(min=0), default=0, metavar="FILES",
              help="Also judge so many honest files, of other engine settings.")  # fmt: skip
@click.option("--list", "listing", is_flag=True, help="List the attacks and do nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def attack(
    run: Path, names: tuple[str, ...], count: int, honest: int, listing: bool, as_json: bool
) -> None:
    """Play dishonest nodes against RUN's own checks, in full, and say what was caught.

    RUN is a prepared run with trust = "validate": its directory or run.toml. Nothing in it is
    changed. Exits 1 where something passes that mustn't, or an honest file is rejected.
    """
    from prime_core.config.load import load_run
    from prime_core.run.supervisor import run_directory
    from prime_core.store.layout import RUN
    from prime_core.testing.attacks import playing, table
    from prime_core.testing.attacks.catalogue import ATTACKS, BY_NAME
    from prime_core.testing.attacks.judging import Judge
    from prime_core.testing.attacks.world import open_world

    if listing:
        for each in ATTACKS:
            print(f"{each.name:<22} {each.fakes} ({', '.join(each.caught_by)}: {each.ending})")
        return
    with open_world(load_run(run_directory(run) / RUN)) as world:
        chosen = playing.chosen(world, names)
        judge = Judge(world)
        noises = playing.noise(world, judge, honest) if honest else []
        attempts = playing.base(world, judge, count)
        results = [playing.play(world, judge, each, attempts) for each in chosen]
    if as_json:
        print(json.dumps({"attacks": table.values(results), "honest": table.values(noises)}))
    else:
        print(table.text([table.attack_row(each) for each in results]))
        if noises:
            print()
            print(table.text([table.noise_row(each) for each in noises]))
        for played in chosen:
            if played.why:
                print(f"\n{played.name} isn't always caught: {played.why}")
    missed = [r for r in results if r.caught < r.files and not BY_NAME[r.attack].why]
    if missed or any(each.rejected for each in noises):
        sys.exit(1)
