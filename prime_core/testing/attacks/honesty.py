"""Honest nodes of other engine settings, and how far their files are from being rejected.

Called by `prime-core attack`, tests and benchmarks.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.api import RowPrefill
from prime_core.testing.attacks.judging import Judge, Judged
from prime_core.testing.attacks.node import honest

if TYPE_CHECKING:
    from prime_core.testing.attacks.world import World
    from prime_core.validation.context import FileContext

HONEST = 1_000_000  # first index of submissions that are judged for noise alone


@dataclass(frozen=True, slots=True)
class Margins:
    """The largest deviations of honest files, in the units of the checks' parameters."""

    logprob_mean: float = 0.0
    logprob_token: float = 0.0
    logprob_file: float = 0.0
    race_gap: float = 0.0
    lost_share: float = 0.0
    file_loss: float = 0.0
    exponent_mismatches: int = 0
    mantissa_mean: float = 0.0
    sampling_z: float = 0.0
    shape_z: float = 0.0


@dataclass(frozen=True, slots=True)
class Noise:
    """What became of honest files in one setting.

    Attributes:
        setting: in which the node differs from the validator.
        cpu_s: seconds a file by check, of this process.
        generate_s: seconds a file that making it took.
    """

    setting: str
    files: int
    groups: int
    rejected: int
    by: Mapping[str, int]
    margins: Margins
    cpu_s: Mapping[str, float] = field(default_factory=dict)
    generate_s: float = 0.0


def settings(world: World) -> dict[str, dict[str, Any]]:
    """Engine parameters in which honest nodes differ from the validator."""
    size = int(world.config.engine.params.get("batch_size", 32))
    return {
        "as configured": {},
        "eager attention": {"attention": "eager"},
        "other batches": {"batch_size": size // 3 + 1},
        "other thread count": {"threads": world.config.engine.threads + 1},
    }


def noise(world: World, judge: Judge, files: int, *, first: int = HONEST) -> list[Noise]:
    """Honest files of nodes that differ in their engine's settings, evenly over the settings."""
    differing = settings(world)
    share = -(-files // len(differing))
    return [
        noise_of(world, judge, setting, params, share, first=first + index * share)
        for index, (setting, params) in enumerate(differing.items())
    ]


def noise_of(
    world: World,
    judge: Judge,
    setting: str,
    params: Mapping[str, Any],
    files: int,
    *,
    first: int = HONEST,
) -> Noise:
    """Honest files of one setting.

    Nothing is remembered from one file to another, so that costs are those of a validator.

    Args:
        params: of the node's engine, as `World.engine` takes them.
        first: index of the first submission.
    """
    started = time.process_time()
    attempts = honest(world, files, first=first, **params)
    made = (time.process_time() - started) / files
    world.forget()
    found = _noise(setting, judge.judge(attempts), made)
    world.forget()
    return found


def _noise(setting: str, judged: Sequence[Judged], made: float) -> Noise:
    rejected = [each for each in judged if each.caught]
    names = list(dict.fromkeys(name for each in judged for name in each.cpu))
    return Noise(
        setting=setting,
        files=len(judged),
        groups=sum(each.context.view.groups for each in judged),
        rejected=len(rejected),
        by=dict(Counter(each.verdict.check for each in rejected)),
        margins=_largest([_margins(each.context) for each in judged if not each.caught]),
        cpu_s={
            name: sum(each.cpu.get(name, 0.0) for each in judged) / len(judged) for name in names
        },
        generate_s=made,
    )


def _margins(context: FileContext) -> Margins:
    """How far one accepted file's rows are off."""
    rows = [index for index, row in enumerate(context.view.rows) if row.length]
    found: list[Margins] = []
    errors_of_file, gaps_of_file = [], []
    reports = context.verify_proofs(
        rows, exponent_mismatches=128, mantissa_mean=2.0**64, mantissa_median=2.0**64
    )
    for index, prefill, report in zip(rows, context.prefill(rows), reports, strict=True):
        row = context.view.rows[index]
        own = np.asarray(row.completion_mask, dtype=bool)
        errors = np.abs(np.asarray(row.completion_logprobs)[own] - np.asarray(prefill.logprobs))
        gaps = np.asarray(prefill.race_gaps)
        away = np.asarray(prefill.logprobs) - np.asarray(prefill.means)
        spread = float(np.asarray(prefill.variances).sum())
        errors_of_file.append(errors)
        gaps_of_file.append(gaps)
        found.append(
            Margins(
                logprob_mean=float(errors.mean()),
                logprob_token=float(errors.max()),
                race_gap=float(gaps.max()),
                lost_share=float((gaps > 0).mean()),
                exponent_mismatches=max(c.exponent_mismatches for c in report.chunks),
                mantissa_mean=max(c.mantissa_mean for c in report.chunks),
                sampling_z=abs(float(away.sum())) / (spread + 4.0) ** 0.5,
                shape_z=_shape(prefill),
            )
        )
    if found:
        of_file = Margins(
            logprob_file=float(np.concatenate(errors_of_file).mean()),
            file_loss=float(np.concatenate(gaps_of_file).mean()),
        )
        found.append(of_file)
    return _largest(found)


def _shape(prefill: RowPrefill) -> float:
    """Deviations of the spread of tokens' places, as the check `sampling` has them."""
    low, high = 2 * np.asarray(prefill.lower) - 1, 2 * np.asarray(prefill.upper) - 1
    spread = (low * low + low * high + high * high) / 3
    return abs(float((spread - 1 / 3).sum())) / math.sqrt(4 / 45 * spread.size)


def _largest(found: Sequence[Margins]) -> Margins:
    if not found:
        return Margins()
    names = Margins.__slots__
    return Margins(**{name: max(getattr(each, name) for each in found) for name in names})
