"""What dishonest nodes gain: caught or not, by which check, at which cost; and honest ones.

    python benchmarks/attacks.py [--quick] [--model tiny|smollm2] [--dtype float32|bfloat16]
                                 [--count N] [--honest GROUPS] [--fuzz FILES]
                                 [--only PART,...] [--markdown] [--out FILE]

Every submission is judged in full by the validator's own code, with the checks of the run; CPU is
that of this process. Parts: honest (nodes that differ in attention, batches and thread count),
attacks, alone (each model check by itself), stale (detection power by learning rate and lag), fuzz.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from prime_core.config.sections import RunConfig
from prime_core.testing.attacks import playing, staleness, table
from prime_core.testing.attacks.catalogue import MODELS, TEXTS
from prime_core.testing.attacks.fuzz import fuzz, small
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.prepared import prepare_smollm2, prepare_tiny
from prime_core.testing.attacks.world import World, open_world

ALONE = ("termination", "logprobs", "sampling", "replay", "toploc")
RATES = (1e-6, 1e-5, 1e-4, 1e-3)
LAGS = (1, 2, 4, 8)


def prepare(model: str, dtype: str, folder: Path) -> RunConfig:
    """The run that is attacked."""
    return (prepare_tiny if model == "tiny" else prepare_smollm2)(folder, dtype=dtype)


def alone(world: World, attempts: Any) -> list[dict[str, Any]]:
    """Share of files that each check of stage model finds with no other's help."""
    checks = {each.name: each for each in world.tools.checks}
    judges = {name: Judge(world, [checks["schema"], checks[name]]) for name in ALONE}
    rows = []
    names = [each.name for each in (*MODELS, *TEXTS) if not each.needs]
    for attack in playing.chosen(world, names):
        spoilt = attack.forge(world, attempts, Random(attack.name))
        row: dict[str, Any] = {"attack": attack.name}
        for name, judge in judges.items():
            caught = sum(each.caught for each in judge.judge(spoilt, apart=False))
            row[name] = f"{100 * caught / len(spoilt):.0f} %"
        rows.append(row)
        world.forget()
    return rows


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", choices=("tiny", "smollm2"), default="tiny")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--count", type=int, default=300, help="submissions of each attack")
    parser.add_argument("--honest", type=int, default=3000, help="honest groups")
    parser.add_argument("--fuzz", type=int, default=100_000, help="mutated files")
    parser.add_argument("--only", default="honest,attacks,alone,stale,fuzz")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=Path, help="also write everything there, as JSON")
    options = parser.parse_args()
    if options.quick:
        options.count, options.honest, options.fuzz = 8, 32, 500
    parts = set(options.only.split(","))
    show = table.markdown if options.markdown else table.text
    kept: dict[str, Any] = {"load": os.getloadavg()}

    def say(title: str, rows: Any) -> None:
        spent = f"{time.process_time() - started:.0f} s of CPU so far"
        now = f"load {os.getloadavg()[0]:.0f}, {time.strftime('%H:%M')}"
        print(f"\n{title} ({spent}, {now})\n\n{show(rows)}", flush=True)

    started = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        config = prepare(options.model, options.dtype, Path(folder))
        with open_world(config) as world:
            run(world, options, parts, say, kept)
    if options.out is not None:
        options.out.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def run(world: World, options: Any, parts: set[str], say: Any, kept: dict[str, Any]) -> None:
    """The chosen parts in one world."""
    judge = Judge(world)
    if "honest" in parts:
        groups = world.config.engine.groups_per_submission
        noises = playing.noise(world, judge, -(-options.honest // groups))
        kept["honest"] = table.values(noises)
        say("honest nodes", [table.noise_row(each) for each in noises])
        say("cost of the checks", table.cost_rows(noises))
    attempts = playing.base(world, judge, options.count)
    if "attacks" in parts:
        chosen = playing.chosen(world, ())
        results = []
        for attack in chosen:
            result = playing.play(world, judge, attack, attempts)
            results.append(result)
            print(json.dumps(table.attack_row(result)), file=sys.stderr, flush=True)
        kept["attacks"] = table.values(results)
        say("dishonest nodes", [table.attack_row(each) for each in results])
    if "stale" in parts:
        rates, lags = (RATES[2:], LAGS[:1]) if options.quick else (RATES, LAGS)
        found = staleness.power(
            world, judge, attempts, learning_rates=rates, lags=lags, files=options.count // 3 or 1
        )
        kept["stale"] = table.values(found)
        say("stale weights", [table.power_row(each) for each in found])
    if "alone" in parts:
        rows = alone(world, attempts[: max(1, options.count // 3)])
        kept["alone"] = rows
        say("each check alone", rows)
    if "fuzz" in parts:
        done = fuzz(world, judge, small(world, attempts[0]), options.fuzz)
        row = {name: getattr(done, name) for name in ("files", "refused", "same", "caught")}
        kept["fuzz"] = {**row, "accepted": done.accepted}
        say("mutated files", [kept["fuzz"]])


if __name__ == "__main__":
    main()
