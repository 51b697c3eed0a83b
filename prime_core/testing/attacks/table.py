"""Tables of what was caught: as text for people, as values for machines, as Markdown for docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from prime_core.testing.attacks.catalogue import BY_NAME
from prime_core.testing.attacks.honesty import Margins, Noise
from prime_core.testing.attacks.playing import Result
from prime_core.testing.attacks.staleness import Power
from prime_core.toploc.noise import upper_bound

Row = Mapping[str, Any]


def attack_row(result: Result) -> Row:
    """One attack's line."""
    attack = BY_NAME[result.attack]
    return {
        "attack": result.attack,
        "fakes": attack.fakes,
        "caught by": counts(result.by),
        "caught": f"{result.caught}/{result.files}",
        "at least": f"{100 * result.bound:.1f} %",
        "ends as": "/".join(sorted(result.severities)),
        "ms": f"{1e3 * result.cpu_s:.1f}",
    }


def harm_row(result: Result) -> Row:
    """What an attack on somebody else did to him, one line."""
    bound = upper_bound(result.harmed, result.files)
    return {
        "attack": result.attack,
        "aims at": BY_NAME[result.attack].aims_at,
        "harmed": f"{result.harmed}/{result.files}",
        "at most": f"{100 * bound:.2f} %",
    }


def noise_row(noise: Noise) -> Row:
    """One honest setting's line."""
    margins = noise.margins
    bound = upper_bound(noise.rejected, noise.files)
    return {
        "setting": noise.setting,
        "groups": noise.groups,
        "files rejected": f"{noise.rejected}/{noise.files}",
        "at most": f"{100 * bound:.2f} %",
        "log-prob. error, mean": f"{margins.logprob_mean:.1e}",
        "token": f"{margins.logprob_token:.1e}",
        "file": f"{margins.logprob_file:.1e}",
        "race gap": f"{margins.race_gap:.1e}",
        "races lost": f"{100 * margins.lost_share:.1f} %",
        "file, nats": f"{margins.file_loss:.1e}",
        "exponents": margins.exponent_mismatches,
        "mantissas": f"{margins.mantissa_mean:.2f}",
        "sampling z": f"{margins.sampling_z:.1f}",
        "shape z": f"{margins.shape_z:.1f}",
    }


def power_row(power: Power) -> Row:
    """One learning rate's and lag's line."""
    return {
        "learning rate": f"{power.learning_rate:g}",
        "lag": power.lag,
        "weights moved": f"{power.moved:.1e}",
        "caught": f"{power.caught}/{power.files}",
        "at least": f"{100 * power.bound:.1f} %",
        "caught by": counts(power.by),
    }


def cost_rows(noises: Sequence[Noise]) -> list[Row]:
    """CPU of each check a file, over all settings."""
    names = list(dict.fromkeys(name for noise in noises for name in noise.cpu_s))
    files = sum(noise.files for noise in noises)
    rows: list[Row] = []
    for name in names:
        spent = sum(noise.cpu_s.get(name, 0.0) * noise.files for noise in noises)
        rows.append({"check": name, "ms a file": f"{1e3 * spent / files:.2f}"})
    return rows


def text(rows: Sequence[Row]) -> str:
    """Columns of equal width."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [names, *[[str(row[name]) for name in names] for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def markdown(rows: Sequence[Row]) -> str:
    """The same as a Markdown table."""
    if not rows:
        return ""
    names = list(rows[0])
    lines = [names, ["---"] * len(names), *[[str(row[name]) for name in names] for row in rows]]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def values(found: Sequence[Result | Noise | Power]) -> list[dict[str, Any]]:
    """Plain values, with the bounds."""
    rows = []
    for each in found:
        row = asdict(each)
        if not isinstance(each, Noise):
            row["bound"] = each.bound
        rows.append(row)
    return rows


def result_of(values: Mapping[str, Any]) -> Result:
    """A result of its plain values."""
    return Result(**_fields(Result, values))


def power_of(values: Mapping[str, Any]) -> Power:
    """A detection power of its plain values."""
    return Power(**_fields(Power, values))


def noise_of(values: Mapping[str, Any]) -> Noise:
    """A setting's noise of its plain values."""
    return Noise(**{**_fields(Noise, values), "margins": Margins(**values["margins"])})


def _fields(kind: type[Result | Noise | Power], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: values[name] for name in kind.__slots__ if name in values}


def counts(by: Mapping[str, int]) -> str:
    """Checks with how often each was first, most often first."""
    named = {name: count for name, count in by.items() if name}
    if len(named) == 1:
        return next(iter(named))
    ordered = sorted(named.items(), key=lambda item: -item[1])
    return ", ".join(f"{name} {count}" for name, count in ordered)
