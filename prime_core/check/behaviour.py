"""A jailed child: makes plugins of the kinds that don't judge, and holds them to their contracts.

Started as `python -m prime_core.check.behaviour REQUEST RESULT` by the rules of family K.
Invariant: what a plugin raises is a problem of that plugin, in words.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from prime_core.api import (
    Completion,
    Instruction,
    Message,
    Reward,
    RewardedGroup,
    Score,
    ScoredGroup,
    ScoredRollout,
    Task,
    TaskProfile,
)
from prime_core.hosting.environment import HashRng

TASK = Task(id="t", prompt=(Message("user", "2+2"),), gold="4")
GROUPS: tuple[tuple[float, ...], ...] = ((1.0,), (0.0, 1.0), (0.0,) * 8, (0.0, 0.5, 1.0, 1.0))
BUDGETS = (None, 1, 200, 4000)


def group(values: tuple[float, ...], budget: int | None) -> ScoredGroup:
    """A group with these scores and growing lengths."""
    rollouts = tuple(
        ScoredRollout(
            Completion("x", (Message("assistant", "x"),), "stop", 10 + 37 * number), Score(value)
        )
        for number, value in enumerate(values)
    )
    return ScoredGroup(TASK, rollouts, budget)


def reward(make: Callable[[], Any]) -> Iterator[str]:
    """One finite reward a rollout, the same every time and in any order, rising with the score."""
    first, second = make(), make()
    for values in GROUPS:
        for budget in BUDGETS:
            given = group(values, budget)
            rewards = list(first.reward(given))
            if len(rewards) != len(values):
                yield f"{len(rewards)} rewards for {len(values)} rollouts"
                return
            totals = [each.total for each in rewards]
            if not all(isinstance(each, Reward) and math.isfinite(each.total) for each in rewards):
                yield f"the rewards {totals} aren't all finite"
            if list(second.reward(given)) != rewards or list(first.reward(given)) != rewards:
                yield f"scores {values} with budget {budget} get other rewards the second time"
            turned = ScoredGroup(TASK, given.rollouts[::-1], budget)
            back = [each.total for each in first.reward(turned)][::-1]
            if any(abs(a - b) > 1e-9 for a, b in zip(totals, back, strict=True)):
                yield f"scores {values} in another order get {back}, not {totals}"
    for budget in BUDGETS:
        said = Completion("x", (Message("assistant", "x"),), "stop", 50)
        pair = (ScoredRollout(said, Score(0.0)), ScoredRollout(said, Score(1.0)))
        low, high = (each.total for each in first.reward(ScoredGroup(TASK, pair, budget)))
        if low > high:
            yield f"a better score pays less: 0 pays {low}, 1 pays {high}, budget {budget}"


def length_budget(make: Callable[[], Any]) -> Iterator[str]:
    """Targets are positive whole numbers or None, from the given words alone."""
    first, second = make(), make()
    for seed in range(50):
        drawn = first.draw(HashRng(seed), TASK, "default", seed)
        if drawn is not None and (not isinstance(drawn, int) or drawn <= 0):
            yield f"it drew {drawn!r}"
            return
        if drawn != second.draw(HashRng(seed), TASK, "default", seed):
            yield "equal words give other targets"
            return
        said = first.instruction(100 if drawn is None else drawn)
        if not isinstance(said, Instruction) or not said.text.strip():
            yield f"the instruction is {said!r}"
            return


def data_filter(make: Callable[[], Any]) -> Iterator[str]:
    """Decisions have reasons and repeat."""
    made = make()
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
    if callable(getattr(made, "keep_task", None)):
        calls += [(made.keep_task, (TASK, TaskProfile("t", rate, 8, int(8 * rate))))
                  for rate in (0.0, 0.25, 1.0)]  # fmt: skip
    if callable(getattr(made, "keep_group", None)):
        for values in GROUPS:
            scored = group(values, None)
            rewards = tuple(Reward(value) for value in values)
            calls.append((made.keep_group, (RewardedGroup("0-n-0-0", "e", scored, rewards),)))
    for call, arguments in calls:
        decision = call(*arguments)
        if not decision.reason or len(decision.reason) > 80:
            yield f"the reason {decision.reason!r} is empty or long"
        if call(*arguments) != decision:
            yield "it decides otherwise the second time"


def advantage(make: Callable[[], Any]) -> Iterator[str]:
    """Equal rewards give exactly 0; others are finite, one each."""
    made = make()
    for size in (1, 2, 8, 16):
        for value in (0.0, 1.0, 0.1, -3.7, 1e9):
            found = list(made.advantages([value] * size))
            if found != [0.0] * size:
                yield f"{size} rewards of {value} give {found[:3]}"
                return
    found = list(made.advantages([0.0, 0.5, 1.0, 1.0]))
    if len(found) != 4 or not all(math.isfinite(each) for each in found):
        yield f"rewards 0, 0.5, 1, 1 give {found}"


KINDS: Mapping[str, Callable[[Callable[[], Any]], Iterator[str]]] = {
    "reward": reward,
    "length_budget": length_budget,
    "data_filter": data_filter,
    "advantage": advantage,
}


def main(arguments: list[str]) -> None:
    """Answer one request."""
    from prime_core.config.sections import PluginChoice
    from prime_core.hub import Hub, RunContext

    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    context = RunContext(None, Path(request["cache_dir"]), offline=True)
    choice = PluginChoice.model_validate(request["choice"])
    problems: list[str] = []
    try:
        hub = Hub.discover(request["block"])
        looked = KINDS[request["kind"]](lambda: hub.make(request["kind"], choice, context))
        for problem in looked:
            problems.append(problem)
            if len(problems) == 5:
                break
    except Exception as error:  # noqa: BLE001 - the plugin's code
        problems.append(f"it raised {type(error).__name__}: {error}")
    Path(arguments[1]).write_text(json.dumps({"problems": problems}), encoding="utf-8")
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
