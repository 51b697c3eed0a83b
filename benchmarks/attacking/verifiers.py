"""Completions that attack verifiers and jails: said by a node, and as if the policy said them."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from attacking.kept import Kept
from prime_core.config.sections import RunConfig
from prime_core.evaluation.verifying import read_case_rows
from prime_core.testing.attacks import playing
from prime_core.testing.attacks.attack import Attack
from prime_core.testing.attacks.catalogue import WORDS
from prime_core.testing.attacks.hostile import COMPLETIONS, Faced, Hostile, by_node, face, honest
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.table import counts
from prime_core.testing.attacks.world import open_world

Prepare = Callable[..., RunConfig]
TOKENS = 320  # most of the completions whole


def by_sort(prepare: Prepare, options: Namespace, kept: Kept) -> list[dict[str, Any]]:
    """One line a sort of completion: who refuses a node's, and what the verifier gives for it."""
    hostile = [*COMPLETIONS, *(each for path in options.cases for each in attacks_of(path))]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        config = prepare(options, Path(folder), tokens=TOKENS)
        with open_world(config) as world:
            judge = Judge(world)
            base = playing.base(world, judge, max(4, options.count // 10))
            for sort in dict.fromkeys(each.sort for each in hostile):
                mine = [each for each in hostile if each.sort == sort]

                def measured(sort: str = sort, mine: list[Hostile] = mine) -> dict[str, Any]:
                    forge = by_node([each.text for each in mine])
                    attack = Attack(sort, "", WORDS, "reject", forge)
                    played = playing.play(world, judge, attack, base)
                    found = face([*mine, honest()], world.context.cache_dir)
                    return _row(played, found[:-1], found[-1])

                row = kept.get("verifiers", sort, measured)
                rows.append({name: row[name] for name in row if name != "measured"})
    return rows


def attacks_of(path: Path) -> list[Hostile]:
    """The attacks of a file of cases for the verifier `code`."""
    return [
        Hostile(f"attacks of {path.name}", "code", str(row.fields["completion"]), row.fields)
        for row in read_case_rows(path)
        if row.kind == "attack"
    ]


def _row(played: playing.Result, found: list[Faced], honest: Faced) -> dict[str, Any]:
    return {
        "completions": played.attack,
        "said by a node": f"{played.caught}/{played.files}",
        "caught by": counts(played.by),
        "said by the policy": f"{sum(not each.paid for each in found)}/{len(found)} unpaid",
        "answered": counts(Counter(each.answer.replace("_", " ") for each in found)),
        "then a right one": "paid" if honest.paid else "NOT paid",
    }
