"""`prime-core outcomes RUN` and `prime-core why RUN SAMPLE`: where every rollout of a run is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from prime_core.store.objects import ObjectStore
    from prime_core.store.outcomes import Balance, StepBalance

RUN = click.argument(
    "run", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="RUN"
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@click.command()
@RUN
@JSON
def outcomes(run: Path, as_json: bool) -> None:
    """Print the balance of a run: every dispatched rollout, and what became of it.

    Exits 1 where the balance doesn't hold, which is a defect.
    """
    from prime_core.store.outcomes import balance

    found = balance(_store(run))
    if as_json:
        import json

        click.echo(json.dumps(_as_json(found)))
    else:
        click.echo(_table(found))
    if not found.holds:
        raise SystemExit(1)


@click.command()
@RUN
@click.argument("sample", metavar="SAMPLE")
@JSON
def why(run: Path, sample: str, as_json: bool) -> None:
    """Tell one sample's life. SAMPLE is <group id>/<number>, e.g. 3-worker-0-1-4/2."""
    from prime_core.store.outcomes import why as tell

    lines = tell(_store(run), sample)
    if as_json:
        import json

        click.echo(json.dumps({"sample": sample, "events": lines}))
    else:
        click.echo("\n".join(lines))


def _store(run: Path) -> ObjectStore:
    """The run's store: where its resolved config says, or the directory itself without one."""
    from prime_core.api.errors import RunError
    from prime_core.store import layout
    from prime_core.store.objects import ObjectStore

    resolved = run / layout.RUN
    if not resolved.is_file():
        raise RunError(
            "not a run directory: it has no run.toml",
            where=str(run),
            fix="name the directory that `prime-core train` printed",
        )
    from prime_core.config.load import load

    return ObjectStore(load(resolved, check_files=False).config.store.url or str(run))


def _as_json(found: Balance) -> dict[str, Any]:
    return {
        "holds": found.holds,
        "total": _step_json(found.total),
        "steps": {str(step): _step_json(each) for step, each in found.steps.items()},
    }


def _step_json(found: StepBalance) -> dict[str, Any]:
    return {
        "dispatched": found.dispatched,
        "outcomes": dict(found.outcomes),
        "carried": found.carried,
        "in_flight": found.in_flight,
        "holds": found.holds,
    }


def _table(found: Balance) -> str:
    """One line a step; the columns are the outcomes that occur."""
    names = list(found.total.outcomes)
    head = ["step", "dispatched", *names, "carried", "in flight"]
    lines = [head]
    for label, each in [*((str(s), b) for s, b in found.steps.items()), ("total", found.total)]:
        counts = [each.outcomes.get(name, 0) for name in names]
        cells = [each.dispatched, *counts, each.carried, each.in_flight]
        lines.append([label, *(str(cell) for cell in cells)])
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    text = [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]
    verdict = "the balance holds" if found.holds else "THE BALANCE DOES NOT HOLD"
    return "\n".join([*text, "", f"{verdict}: dispatched = outcomes + carried + in flight"])
