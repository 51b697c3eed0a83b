"""Plays attacks in one world, and counts what the checks made of them.

Called by `prime-core attack`, tests and benchmarks. Honest submissions are made once and shared by
all attacks; a forward pass that two files need is made once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from prime_core.api import PrimeError, RunError
from prime_core.testing.attacks.attack import Attack, Attempt, Heard, UnfitError
from prime_core.testing.attacks.catalogue import ATTACKS, BY_NAME
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.node import honest
from prime_core.toploc.noise import upper_bound

if TYPE_CHECKING:
    from prime_core.store.verdicts import Verdict
    from prime_core.testing.attacks.world import World


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one attack's files.

    Attributes:
        caught: files that met the attack's ending: rejected, or accepted without the group.
        by: first check that found them; "" for accepted ones.
        severities: of the verdicts.
        cpu_s: seconds of this process a file, forging not included.
        reason: of the first that was caught.
        harmed: files that did others harm, where the attack aims at that.
        harm: the first of it.
    """

    attack: str
    files: int
    caught: int
    by: Mapping[str, int]
    severities: Mapping[str, int]
    cpu_s: float
    reason: str
    harmed: int = 0
    harm: str = ""

    @property
    def bound(self) -> float:
        """Clopper-Pearson's 95 % lower bound on the share that is caught."""
        return 1.0 - upper_bound(self.files - self.caught, self.files)


@dataclass(frozen=True, slots=True)
class Unplayed:
    """An attack that said nothing about the checks, and why."""

    attack: str
    error: PrimeError

    @property
    def unfit(self) -> bool:
        """Whether nobody could try it in this run; else it broke."""
        return isinstance(self.error, UnfitError)


def chosen(world: World, names: Sequence[str]) -> list[Attack]:
    """Attacks by name, all that make sense in this run for none.

    Raises:
        RunError: a name that isn't one, or an attack that makes no sense in this run.
    """
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise RunError(
            f"there is no attack {', '.join(unknown)}",
            where="--attack",
            fix=f"one of: {', '.join(BY_NAME)}",
        )
    found = [BY_NAME[name] for name in names] or list(ATTACKS)
    fitting = [attack for attack in found if _fits(world, attack)]
    if names and len(fitting) < len(found):
        lacking = [f"{attack.name} ({attack.needs})" for attack in found if attack not in fitting]
        raise RunError(
            f"this run lacks what an attack needs: {', '.join(lacking)}",
            where="--attack",
            fix="choose a run that has it",
        )
    return fitting


def _fits(world: World, attack: Attack) -> bool:
    pools = [pool.description for pool in world.recomputer.rescorer.pools.values()]
    return {
        "": True,
        "length_budget": world.config.length_budget is not None,
        "multi_turn": any(each.multi_turn for each in pools),
        "gold": all(each.has_gold for each in pools),
    }[attack.needs]


def play(
    world: World, judge: Judge, attack: Attack, attempts: Sequence[Attempt], *, seed: int = 0
) -> Result:
    """Let an attack spoil honest submissions, and judge what it made."""
    spoilt = attack.forge(world, attempts, Random(f"{attack.name} {seed}"))
    started = time.process_time()
    if attack.hear is None:
        judged = judge.judge(spoilt, apart="schema" in attack.caught_by)
        heard = [Heard(each.verdict) for each in judged]
    else:
        heard = attack.hear(world, attempts, spoilt)
    seconds = (time.process_time() - started) / max(1, len(heard))
    caught = [each for each in heard if _is_caught(attack, each.verdict)]
    harms = [each.harm for each in heard if each.harm]
    world.forget()
    return Result(
        attack=attack.name,
        files=len(heard),
        caught=len(caught),
        by=dict(Counter(_found_by(each.verdict) for each in heard)),
        severities=dict(Counter(each.verdict.severity or "accepted" for each in heard)),
        cpu_s=seconds,
        reason=next((each.verdict.reason for each in caught), ""),
        harmed=len(harms),
        harm=next(iter(harms), ""),
    )


def play_all(
    world: World, judge: Judge, attacks: Sequence[Attack], attempts: Sequence[Attempt]
) -> Iterator[Result | Unplayed]:
    """Play attacks one by one; one that can't be played costs the others nothing."""
    for attack in attacks:
        try:
            yield play(world, judge, attack, attempts)
        except PrimeError as error:
            world.forget()
            yield Unplayed(attack.name, error)


def _is_caught(attack: Attack, verdict: Verdict) -> bool:
    """Whether the file trains nothing, or less where that is all that can be asked."""
    rejected = verdict.decision == "rejected"
    return rejected or (attack.ending == "drop" and bool(verdict.dropped))


def _found_by(verdict: Verdict) -> str:
    return verdict.check or (verdict.dropped[0].check if verdict.dropped else "")


def base(world: World, judge: Judge, count: int) -> list[Attempt]:
    """Honest submissions for attacks to spoil; what is computed about them is kept.

    Raises:
        RunError: one is rejected, so that nothing can be measured in this run.
    """
    attempts = honest(world, count)
    for judged in judge.judge(attempts, apart=False):
        if judged.caught:
            raise RunError(
                f"an honest file is rejected by {judged.verdict.check}: {judged.verdict.reason}",
                where="[[checks]]",
                fix="calibrate the checks' thresholds",
            )
    world.keep()
    return attempts
