"""How often a cheat that hides in rounding is found, by the tokens of a file.

Twice: with the default thresholds, and with thresholds fitted to honest noise, as a trainer would
set them after `prime-core attack RUN --honest FILES`.
"""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any

from attacking.kept import Kept
from prime_core.config.sections import RunConfig
from prime_core.testing.attacks import honesty, playing
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.world import World, open_world
from prime_core.validation.judging import NamedCheck

GROUPS = (1, 2, 4, 8, 16)  # of a file
HIDING = ("int8", "int8-honest-proofs", "steered", "steered-once")

Prepare = Callable[..., RunConfig]


def fitted(world: World, margins: honesty.Margins) -> list[NamedCheck]:
    """The run's checks, with twice the largest honest deviations (four times a single token's)."""
    params = {
        "logprobs": {
            "mean_error": 2 * margins.logprob_mean + 1e-6,
            "token_error": 4 * margins.logprob_token + 1e-5,
            "file_error": 2 * margins.logprob_file + 1e-6,
        },
        "replay": {
            "margin": 2 * margins.race_gap + 1e-5,
            "most": 4 * margins.race_gap + 1e-4,
            "lost_share": min(0.5, 2 * margins.lost_share),
            "file_loss": 2 * margins.file_loss,
        },
        "toploc": {
            "exponent_mismatches": min(38, 2 * margins.exponent_mismatches + 2),
            "mantissa_mean": min(10.0, 2 * margins.mantissa_mean + 1.0),
        },
    }
    found = []
    for choice in world.config.sanity_checks:
        values = {**choice.params, **params.get(choice.use, {})}
        changed = choice.model_copy(update={"params": values})
        check = world.hub.make("sanity_check", changed, world.context)
        found.append(NamedCheck(choice.use, check))
    return found


def by_tokens(
    prepare: Prepare, options: Namespace, honest: list[honesty.Noise], kept: Kept
) -> list[dict[str, Any]]:
    """A row for each size of files; shares caught with default and with fitted thresholds.

    Args:
        honest: noise of honest nodes, over all settings.
    """
    largest = honesty.Margins(
        **{
            each.name: max(getattr(noise.margins, each.name) for noise in honest)
            for each in fields(honesty.Margins)
        }
    )
    rows = []
    for groups in GROUPS:
        make = partial(_played, prepare, options, groups, largest)
        found = kept.get("tokens", str(groups), make)
        row: dict[str, Any] = {"tokens a file": f"{found['tokens']:.0f}", "files": found["files"]}
        for name in HIDING:
            shares = (100 * each / found["files"] for each in found["caught"][name])
            row[name] = " / ".join(f"{share:.0f} %" for share in shares)
        rows.append({**row, "honest rejected": " / ".join(map(str, found["honest"]))})
    return rows


def _played(
    prepare: Prepare, options: Namespace, groups: int, margins: honesty.Margins
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        config = prepare(options, Path(folder), groups=groups)
        with open_world(config) as world:
            judges = (Judge(world), Judge(world, fitted(world, margins)))
            attempts = playing.base(world, judges[0], max(20, options.count // groups))
            refused = [sum(each.caught for each in j.judge(attempts, apart=False)) for j in judges]
            caught = {}
            for attack in playing.chosen(world, HIDING):
                results = [playing.play(world, judge, attack, attempts) for judge in judges]
                caught[attack.name] = [each.caught for each in results]
    lengths = [sum(row.length for row in each.rows) for each in attempts]
    return {
        "groups": groups,
        "tokens": sum(lengths) / len(lengths),
        "files": len(attempts),
        "honest": refused,
        "caught": caught,
    }
