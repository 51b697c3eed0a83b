"""`prime-core validate` and `prime-core audit-plan`: verdicts by hand, and how many are needed."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)


@click.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--run",
    "run",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="The run that the file is for: its directory or run.toml.",
)
@click.option("--unsigned", is_flag=True, help="Leave out who signed it (check `identity`).")
@click.option("--json", "as_json", is_flag=True, help="Print the verdict as JSON.")
def validate(file: Path, run: Path, unsigned: bool, as_json: bool) -> None:
    """Judge one submission in full, as a validator of its run would; writes nothing.

    It says, too, which verdict the file has in the run, and exits 1 where it is rejected here.
    """
    from prime_core.config.load import load_run
    from prime_core.run.supervisor import run_directory
    from prime_core.store.layout import RUN
    from prime_core.store.verdicts import payload_of
    from prime_core.validation.by_hand import validate_file
    from prime_core.validation.reporting import page

    config = load_run(run_directory(run) / RUN)
    found = validate_file(config, file, unsigned=unsigned)
    if as_json:
        standing = [payload_of(each) for each in found.standing]
        said = {**payload_of(found.verdict), "seconds": found.seconds, "standing": standing}
        print(json.dumps(said))
    else:
        print(page(found.verdict, found.seconds, found.standing))
    if found.verdict.decision != "accepted":
        sys.exit(1)


@click.command("audit-plan")
@click.option("--stake", type=float, required=True, help="What a node loses when it's found out.")
@click.option("--locked", type=float, default=0.0, help="Rewards that it would lose too.")
@click.option("--gain", type=float, required=True, help="What one cheating file gains it.")
@click.option("--power", type=float, default=0.99, help="Probability that a full check finds one.")
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    default=16,
    show_default=True,
    help="Groups of a file, for spot checks.",
)
@click.option("--spot-groups", type=click.IntRange(min=0), default=1, show_default=True,
              help="Groups that a spot check looks at.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def audit_plan(
    stake: float,
    locked: float,
    gain: float,
    power: float,
    groups: int,
    spot_groups: int,
    as_json: bool,
) -> None:
    """Say which share of files must be checked in full so that cheating loses.

    Exits 1 where no share is enough.
    """
    from prime_core.validation import audit_plan as plan

    stakes = plan.Stakes(stake, locked, gain, power)
    share = plan.least_share(stakes)
    spots = {
        str(bad): plan.spot_power(groups, spot_groups, bad, power)
        for bad in sorted({1, max(1, groups // 4), groups})
    }
    rows = plan.table(stakes, SHARES)
    if as_json:
        print(json.dumps({"least_share": share, "shares": rows, "spot_power": spots}))
    else:
        _print_plan(share, rows)
        print()
        print(f"a spot check of {min(spot_groups, groups)} of {groups} groups finds a file")
        for bad, chance in spots.items():
            print(f"  with {bad} bad groups: {chance:.3f}")
    if share is None:
        sys.exit(1)


def _print_plan(share: float | None, rows: Sequence[Mapping[str, float]]) -> None:
    if share is None:
        print("no share is enough: a cheating file gains more than the node can lose")
    else:
        enough = math.ceil(share * 1e4) / 1e4  # rounded down it would not be
        print(f"cheating loses from this share on: validation.audit_share = {enough:.4f}")
    print()
    print(f"{'share':>7} {'gain a file':>13} {'10 undetected':>14} {'files to 99 %':>14}")
    for row in rows:
        print(
            f"{row['share']:7.2f} {row['expected_gain']:13.4g} {row['undetected_10']:14.3g} "
            f"{row['files_until_found']:14.0f}"
        )
