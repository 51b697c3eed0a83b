"""`prime-core toploc`: thresholds of commitments, measured on a run's own model."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from prime_core.validation.calibrated import Calibration, Measured


@click.group()
def toploc() -> None:
    """Activation commitments: what proves which model made a rollout."""


@toploc.command()
@click.argument("config_path", metavar="RUN.toml", type=click.Path(path_type=Path))
@click.option("--sequences", type=click.IntRange(min=2), default=32, show_default=True,
              help="Completions in each setting.")  # fmt: skip
@click.option("--tokens", type=click.IntRange(min=1), default=256, show_default=True,
              help="Longest completion; never above the config's.")  # fmt: skip
@click.option("--engine", "engines", multiple=True, metavar="NAME",
              help="Another engine that nodes may use; may be repeated.")  # fmt: skip
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path),
              help="Also write everything that was measured there, as JSON.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def calibrate(
    config_path: Path,
    sequences: int,
    tokens: int,
    engines: tuple[str, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure honest noise and false proofs of RUN.toml's model, and fit thresholds.

    Prints the checks' parameters for the run config. Exits 1, and gives none, where a proof made
    without running the model passes: then commitments protect nothing in this setting.
    """
    from prime_core.config.load import load
    from prime_core.validation.calibration_setup import calibrator

    config = load(config_path).config
    progress = (lambda text: None) if as_json else (lambda text: click.echo(text, err=True))
    found = calibrator(
        config, sequences=sequences, tokens=tokens, progress=progress, engines=engines
    ).calibrate()
    text = json.dumps(found.to_json())
    if out is not None:
        out.write_text(text + "\n", encoding="utf-8")
    click.echo(text if as_json else _report(found))
    if found.forged:
        click.echo(
            f"refused: proofs made without the model pass: {', '.join(found.forged)}", err=True
        )
        sys.exit(1)


def _report(found: Calibration) -> str:
    lines = [
        f"model {found.model}",
        f"engine {found.fingerprint}",
        f"{found.chunks} honest chunks",
        "",
    ]
    lines += _table("honest settings: worst chunk, and chunks rejected", found.honest)
    lines += _table("false proofs: best chunk, and chunks accepted", found.false)
    lines += _table("forgeries: best chunk, and chunks accepted", found.forgeries)
    lines += ["replayed races: honest tokens that lost, of how many, largest gap in nats"]
    for name, race in found.races.items():
        lines.append(f"  {name:<24}{race.lost:>8}{race.tokens:>9}{race.largest:>12.2e}")
    if not found.forged:
        limits = found.thresholds
        lines += [
            "",
            "for the run config:",
            "[[checks]]",
            'use = "toploc"',
            f"with = {{ exponent_mismatches = {limits.exponent_mismatches}, "
            f"mantissa_mean = {limits.mantissa_mean}, "
            f"mantissa_median = {limits.mantissa_median} }}",
            "",
            "[[checks]]",
            'use = "replay"',
            f"with = {{ margin = {found.margin:.3g}, most = {2 * found.margin:.3g}, "
            f"file_loss = {found.file_loss:.3g} }}",
        ]
    return "\n".join(lines)


def _table(title: str, rows: Mapping[str, Measured]) -> list[str]:
    lines = [title]
    lines.append(
        f"  {'':<24}{'exponents':>10}{'mean':>9}{'median':>8}  {'fitted':<28}paper's 38/10/8"
    )
    for name, each in rows.items():
        worst = each.extremes
        mean, median = min(worst.mantissa_mean, 999.0), min(worst.mantissa_median, 999.0)
        lines.append(
            f"  {name:<24}{worst.exponent_mismatches:>10.1f}{mean:>9.3f}{median:>8.0f}  "
            f"{each.fitted.chunks!s:<28}{each.paper.chunks}"
        )
    return [*lines, ""]
