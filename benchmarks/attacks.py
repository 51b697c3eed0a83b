"""What dishonest nodes gain: caught or not, by which check, at which cost; and honest ones.

    python benchmarks/attacks.py [--quick] [--model tiny|smollm2] [--dtype float32|bfloat16]
                                 [--size ROLLOUTS] [--count N] [--honest GROUPS] [--fuzz FILES]
                                 [--vllm PYTHON] [--only PART,...] [--markdown] [--out FILE]

Every submission is judged in full by the validator's own code, with the checks of the run; CPU is
that of this process. Parts: honest (nodes that differ in attention, batches, thread count and,
with --vllm, engine), attacks, alone (each model check by itself), stale (detection power by
learning rate and lag), tokens (what hides in rounding, by tokens of a file), fuzz.
With --out each result is kept as soon as it is there, and a run that was stopped goes on from it.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from attacking.kept import Kept
from attacking.tokens import by_tokens
from attacking.verifiers import by_sort

from prime_core.config.sections import RunConfig
from prime_core.testing.attacks import honesty, playing, staleness, table
from prime_core.testing.attacks.attack import Attempt, UnfitError
from prime_core.testing.attacks.catalogue import BY_NAME, MODELS, TEXTS
from prime_core.testing.attacks.fuzz import fuzz, small
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.prepared import prepare_smollm2, prepare_tiny
from prime_core.testing.attacks.world import World, open_world

ALONE = ("termination", "logprobs", "sampling", "replay", "toploc")
RATES = (1e-6, 1e-5, 1e-4, 1e-3)
LAGS = (1, 2, 4, 8)
PARTS = "honest,attacks,alone,stale,tokens,fuzz,verifiers"


def prepare(options: argparse.Namespace, folder: Path, **values: Any) -> RunConfig:
    """The run that is attacked."""
    values |= {"dtype": options.dtype, "size": options.size}
    if options.model == "smollm2":
        return prepare_smollm2(folder, **values)
    if options.vllm:
        values["heads"] = 2  # vLLM on a CPU wants heads of 32 channels
    if options.kind == "retry":
        values.setdefault("tokens", 60)  # room for a second turn
    return prepare_tiny(folder, kind=options.kind, reward=options.reward, **values)


def main() -> None:
    """Run the parts and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--model", choices=("tiny", "smollm2"), default="tiny")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--size", type=int, default=4, help="rollouts of a group")
    parser.add_argument("--count", type=int, default=300, help="submissions of each attack")
    parser.add_argument("--honest", type=int, default=3000, help="honest groups")
    parser.add_argument("--fuzz", type=int, default=100_000, help="mutated files")
    parser.add_argument("--vllm", help="interpreter with vLLM: honest nodes that use it, too")
    parser.add_argument("--kind", default="addition", help="of the tasks; retry: conversations")
    parser.add_argument("--reward", default="task_minus_length", help="or task: often all equal")
    parser.add_argument("--attack", action="append", default=[], help="only this one; repeated")
    parser.add_argument("--cases", type=Path, action="append", default=[],
                        help="JSONL of cases: their attacks are shown, too")  # fmt: skip
    parser.add_argument("--only", default=PARTS)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--out", type=Path, help="keep every result there, as JSON")
    options = parser.parse_args()
    if options.quick:
        options.count, options.honest, options.fuzz = 8, 32, 500
    named = ("model", "dtype", "size", "count", "honest", "fuzz", "vllm", "kind", "reward")
    kept = Kept(options.out, {name: getattr(options, name) for name in named})
    show = table.markdown if options.markdown else table.text

    def say(title: str, rows: Any) -> None:
        spent = f"{time.process_time() - started:.0f} s of CPU so far"
        now = f"load {os.getloadavg()[0]:.0f}, {time.strftime('%H:%M')}"
        print(f"\n{title} ({spent}, {now})\n\n{show(rows)}", flush=True)

    started = time.process_time()
    parts = set(options.only.split(","))
    with tempfile.TemporaryDirectory() as folder:
        config = prepare(options, Path(folder))
        with open_world(config) as world:
            run(world, options, parts, say, kept)


def run(world: World, options: Any, parts: set[str], say: Any, kept: Kept) -> None:
    """The chosen parts in one world."""
    judge = Judge(world)
    if "honest" in parts:
        noises = honest(world, judge, options, kept)
        say("honest nodes", [table.noise_row(each) for each in noises])
        say("cost of the checks", table.cost_rows(noises))
    if "verifiers" in parts:
        say("completions that attack verifiers", by_sort(prepare, options, kept))
    if not parts & {"attacks", "stale", "alone", "tokens", "fuzz"}:
        return
    attempts = playing.base(world, judge, options.count)
    if "attacks" in parts:
        results = []
        for attack in playing.chosen(world, options.attack):

            def play(attack: Any = attack) -> dict[str, Any]:
                return table.values([playing.play(world, judge, attack, attempts)])[0]

            try:
                results.append(table.result_of(kept.get("attacks", attack.name, play)))
            except UnfitError as error:
                print(f"{attack.name} isn't played: {error.what}", flush=True)
        say("dishonest nodes", [table.attack_row(each) for each in results])
        harms = [table.harm_row(each) for each in results if BY_NAME[each.attack].hear]
        say("what they did to others", harms)
    if "stale" in parts:
        say("stale weights", stale(world, judge, attempts, options, kept))
    if "alone" in parts:
        say("each check alone", alone(world, attempts[: max(1, options.count // 3)], kept))
    if "tokens" in parts:
        rows = by_tokens(prepare, options, honest(world, judge, options, kept), kept)
        say("what hides in rounding: caught by default / fitted thresholds", rows)
    if "fuzz" in parts:

        def mutate() -> dict[str, Any]:
            done = fuzz(world, judge, small(world, attempts[0]), options.fuzz)
            names = ("files", "refused", "same", "caught", "within", "accepted", "largest")
            return {name: getattr(done, name) for name in names}

        row = kept.get("fuzz", "files", mutate)
        say("mutated files", [{name: row[name] for name in row if name != "measured"}])


def honest(world: World, judge: Judge, options: Any, kept: Kept) -> list[honesty.Noise]:
    """Honest nodes of every setting, the groups shared out evenly."""
    settings = honesty.settings(world)
    if options.vllm:
        given = {"use": "vllm", "python": options.vllm, "batch_size": 32}
        settings["engine vllm"] = {**given, "dtype": options.dtype}
    groups = world.config.engine.groups_per_submission
    files = -(-options.honest // (groups * len(honesty.settings(world))))
    found = []
    for index, (setting, params) in enumerate(settings.items()):
        first = honesty.HONEST + index * files

        def judged(setting: str = setting, params: Any = params, first: int = first) -> Any:
            noise = honesty.noise_of(world, judge, setting, params, files, first=first)
            return table.values([noise])[0]

        found.append(table.noise_of(kept.get("honest", setting, judged)))
    return found


def stale(
    world: World, judge: Judge, attempts: list[Attempt], options: Any, kept: Kept
) -> list[Any]:
    """Detection power, all lags of one learning rate at a time."""
    rates, lags = (RATES[2:], LAGS[:1]) if options.quick else (RATES, LAGS)
    found = []
    for rate in rates:

        def measured(rate: float = rate) -> dict[str, Any]:
            files = options.count // 3 or 1
            power = staleness.power(
                world, judge, attempts, learning_rates=(rate,), lags=lags, files=files
            )
            return {"lags": table.values(power)}

        found += [table.power_of(each) for each in kept.get("stale", f"{rate:g}", measured)["lags"]]
    return [table.power_row(each) for each in found]


def alone(world: World, attempts: list[Attempt], kept: Kept) -> list[dict[str, Any]]:
    """Share of files that each check of stage model finds with no other's help."""
    checks = {each.name: each for each in world.tools.checks}
    judges = {name: Judge(world, [checks["schema"], checks[name]]) for name in ALONE}
    rows = []
    for attack in playing.chosen(
        world, [each.name for each in (*MODELS, *TEXTS) if not each.needs]
    ):

        def asked(attack: Any = attack) -> dict[str, Any]:
            spoilt = attack.forge(world, attempts, Random(attack.name))
            row: dict[str, Any] = {"attack": attack.name}
            for name, judge in judges.items():
                caught = sum(each.caught for each in judge.judge(spoilt, apart=False))
                row[name] = f"{100 * caught / len(spoilt):.0f} %"
            world.forget()
            return row

        row = kept.get("alone", attack.name, asked)
        rows.append({name: row[name] for name in ("attack", *ALONE)})
    return rows


if __name__ == "__main__":
    main()
