"""The honest worker's stages, many submissions at once: plan, play, score, write, sign.

Attacks call the same stages and change one of them. Rows are those of `rollout.produce`: the same
planner, player and scoring, only that several submissions share the engine's batches.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np

from prime_core.api import InferenceEngine, PolicyFiles, Rescored
from prime_core.engines.planning import PlannedGroup
from prime_core.engines.turns import Player, Rollout
from prime_core.rollout.scoring import RowSource, finish_group
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow
from prime_core.testing.attacks.attack import Attempt, write
from prime_core.testing.attacks.world import CLAIMED, World
from prime_core.toploc import build_proofs

AT_ONCE = 16  # requests to hosts

Replan = Callable[[Dispatch, list[PlannedGroup]], list[PlannedGroup]]


def produce(
    world: World,
    dispatches: Sequence[Dispatch],
    engine: InferenceEngine,
    policy: PolicyFiles | None = None,
    *,
    temperature: float | None = None,
    replan: Replan | None = None,
) -> list[list[RolloutRow]]:
    """Generate and score what these dispatches announce; rows of each.

    Args:
        policy: what the engine generates with; the claimed one by default.
        temperature: of the sampling; the run's by default.
        replan: changes what is generated.
    """
    engine.load(policy or world.base)
    # hosts answer many at once: asking one by one would wait for each answer
    with ThreadPoolExecutor(AT_ONCE) as asking:
        plans = list(
            asking.map(lambda each: world.recomputer.plan(each, each.node_class), dispatches)
        )
    if replan is not None:
        plans = [replan(each, plan) for each, plan in zip(dispatches, plans, strict=True)]
    player = _player(world, engine, temperature)
    return world.recomputer.loop.run(_produce(world, player, dispatches, plans))


def honest(
    world: World, count: int, *, first: int = 0, version: int = CLAIMED, **params: Any
) -> list[Attempt]:
    """Submissions of an honest node; engine parameters may differ from the config's."""
    dispatches = [world.dispatch(first + n, version) for n in range(count)]
    engine = world.engine(**params)
    rows = produce(world, dispatches, engine, world.policies[version])
    return [
        write(world.signer, dispatch, each, world.meta)
        for dispatch, each in zip(dispatches, rows, strict=True)
    ]


def reworded(world: World, attempt: Attempt, changed: Mapping[int, RolloutRow]) -> Attempt:
    """A submission with other words in some rows, everything else made to fit them.

    Log-probabilities and proofs come from an honest forward pass of the claimed policy, scores and
    rewards from the verifier: the strongest form of an edit.
    """
    rows = list(attempt.rows)
    prefills = world.prefill(list(changed.values()), attempt.dispatch.policy_version)
    for (index, row), prefill in zip(changed.items(), prefills, strict=True):
        own = np.asarray(row.completion_mask, dtype=bool)
        logprobs = np.where(own, np.minimum(prefill.logprobs, 0.0), 0.0)
        rows[index] = replace(
            row,
            completion_logprobs=logprobs.tolist(),
            proofs=build_proofs(prefill.hidden_states[own]),
        )
    return write(
        world.signer, attempt.dispatch, rescored(world, attempt.dispatch, rows), attempt.meta
    )


def rescored(world: World, dispatch: Dispatch, rows: Sequence[RolloutRow]) -> list[RolloutRow]:
    """Rows with the scores and rewards that the verifier gives them."""
    plan = {each.group_id: each for each in world.recomputer.plan(dispatch, dispatch.node_class)}
    found: list[RolloutRow] = []
    for group_id in dict.fromkeys(row.group_id for row in rows):
        members = [row for row in rows if row.group_id == group_id]
        scores = world.recomputer.rescore(plan[group_id], members, dispatch.step)
        found += [_scored(row, score) for row, score in zip(members, scores, strict=True)]
    return found


def _scored(row: RolloutRow, ours: Rescored) -> RolloutRow:
    if ours.mismatch:
        return row  # the node claims what it had
    return replace(
        row,
        score=ours.score.value,
        score_status=ours.score.status,
        reward=ours.reward,
        reward_parts=dict(ours.parts),
    )


def _player(world: World, engine: InferenceEngine, temperature: float | None) -> Player:
    pools, facts = world.recomputer.rescorer.pools, world.facts
    return Player(
        engine=engine,
        chat=world.recomputer.rescorer.chat,
        answering={label: pool for label, pool in pools.items() if pool.description.multi_turn},
        temperature=facts.temperature if temperature is None else temperature,
        max_tokens=facts.max_tokens,
        max_total_tokens=facts.max_total_tokens,
        max_turns=facts.max_turns,
        commit=True,
    )


async def _produce(
    world: World,
    player: Player,
    dispatches: Sequence[Dispatch],
    plans: Sequence[list[PlannedGroup]],
) -> list[list[RolloutRow]]:
    rollouts: dict[str, list[Rollout]] = {
        group.group_id: group.rollouts() for plan in plans for group in plan
    }
    running = [each for group in rollouts.values() for each in group if not each.failure]
    await player.play(running, lambda rollout: None)
    sources = [
        (RowSource(dispatch, player.max_tokens, world.facts.temperature), group)
        for dispatch, plan in zip(dispatches, plans, strict=True)
        for group in plan
    ]
    finished = await asyncio.gather(
        *(_finish(world, group, rollouts[group.group_id], source) for source, group in sources)
    )
    rows = iter(finished)
    return [[row for _ in plan for row in next(rows)] for plan in plans]


async def _finish(
    world: World, group: PlannedGroup, members: Sequence[Rollout], source: RowSource
) -> list[RolloutRow]:
    pool = world.recomputer.rescorer.pools[group.environment]
    return await finish_group(pool, group, members, source, [each.proofs() for each in members])
