"""Nodes that send what somebody has already sent, or in somebody else's name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from prime_core.testing.attacks.attack import Attempt, statement_over, write
from prime_core.testing.attacks.choices import FAR, others
from prime_core.testing.attacks.node import rescored
from prime_core.testing.attacks.world import World


def file(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Another submission's very bytes."""
    return [
        replace(
            each,
            data=other.data,
            statement=statement_over(world.signer, each.dispatch, other.data),
            earlier={other.sha256: "2-another-00000"},
        )
        for each, other in zip(attempts, others(world, len(attempts)), strict=True)
    ]


def rewritten(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Another submission's rows under its own name, bytes and signature new."""
    found = []
    for attempt, other in zip(attempts, others(world, len(attempts)), strict=True):
        rows = [
            replace(row, group_id=own.group_id, submission=own.submission)
            for row, own in zip(other.rows, attempt.rows, strict=True)
        ]
        found.append(write(world.signer, attempt.dispatch, rows, attempt.meta))
    return found


def relabelled(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Another submission's rows with all that the assignment fixes put right, and scored anew."""
    found = []
    for attempt, other in zip(attempts, others(world, len(attempts)), strict=True):
        rows = [
            replace(
                own,
                completion_tokens=row.completion_tokens,
                completion_mask=row.completion_mask,
                completion_logprobs=row.completion_logprobs,
                finish_reason=row.finish_reason,
                turn_ends=row.turn_ends,
                proofs=row.proofs,
            )
            for row, own in zip(other.rows, attempt.rows, strict=True)
        ]
        scored = rescored(world, attempt.dispatch, rows)
        found.append(write(world.signer, attempt.dispatch, scored, attempt.meta))
    return found


def resubmitted(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Its own earlier file, once more under the next index."""
    found = []
    for attempt in attempts:
        dispatch = replace(attempt.dispatch, n=attempt.dispatch.n + FAR)
        said = statement_over(world.signer, dispatch, attempt.data)
        earlier = {attempt.sha256: "an earlier one"}
        found.append(replace(attempt, dispatch=dispatch, statement=said, earlier=earlier))
    return found


def in_anothers_name(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A file under a node's name that another key signed."""
    return [
        replace(each, statement=statement_over(world.other, each.dispatch, each.data))
        for each in attempts
    ]


def unknown_node(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """A file of a node that the run doesn't list."""
    found = []
    for attempt in attempts:
        dispatch = replace(attempt.dispatch, node="stranger")
        rows = [
            replace(row, node="stranger", group_id=row.group_id.replace(row.node, "stranger"))
            for row in attempt.rows
        ]
        found.append(write(world.signer, dispatch, rows, attempt.meta))
    return found


def unsigned(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """No statement beside the file."""
    return [replace(each, statement=None) for each in attempts]


def overwritten(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Somebody who can write to the store puts other bytes where the signed ones were."""
    return [
        replace(each, data=other.data)
        for each, other in zip(attempts, others(world, len(attempts)), strict=True)
    ]


def of_another_run(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
    """Rollouts that were made for another run of the same model."""
    return [
        write(world.signer, each.dispatch, each.rows, replace(each.meta, run_id="another-run"))
        for each in attempts
    ]
