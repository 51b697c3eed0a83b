"""What a dishonest node is, what it sends, and what a judge said of it. Plain values only.

Made by the modules of attacks, listed in `catalogue`, played by `playing`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import TYPE_CHECKING, Literal, TypeAlias

from prime_core.api import RunError
from prime_core.signing import Signer, signed_bytes
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.store.submission import write_submission

if TYPE_CHECKING:
    from prime_core.store.verdicts import Verdict
    from prime_core.testing.attacks.world import World


class UnfitError(RunError):
    """An attack that nobody can try in this run, and why."""

    def __init__(self, what: str) -> None:
        super().__init__(what, where="the attack", fix="play it in a run that has what it needs")


Ending: TypeAlias = Literal["slash", "reject", "drop"]


@dataclass(frozen=True, slots=True)
class Attempt:
    """One submission as a node sends it.

    Attributes:
        rows: what the file holds, or was made from.
        statement: the signed statement beside it; None for none.
        earlier: files that the validator has seen before, by SHA-256.
    """

    dispatch: Dispatch
    rows: tuple[RolloutRow, ...]
    meta: SubmissionMeta
    data: bytes
    statement: bytes | None
    earlier: Mapping[str, str] = field(default_factory=dict)

    @property
    def sha256(self) -> str:
        """Of the file."""
        return hashlib.sha256(self.data).hexdigest()


@dataclass(frozen=True, slots=True)
class Heard:
    """A verdict on one file, and what the file did to others.

    Attributes:
        harm: in words; "" for none.
    """

    verdict: Verdict
    harm: str = ""


Hear: TypeAlias = Callable[["World", Sequence[Attempt], Sequence[Attempt]], list[Heard]]
Forge: TypeAlias = Callable[["World", Sequence[Attempt], Random], list[Attempt]]


@dataclass(frozen=True, slots=True)
class Attack:
    """One way to cheat.

    Attributes:
        fakes: what the node pretends, in a few words.
        caught_by: checks that may be the first to find it, in the default order of checks.
        ending: what the verdict says: slash, reject, or drop (accepted without the group).
        forge: makes dishonest submissions, one of each honest one.
        needs: what a run must have for the attack to make sense; "" for nothing.
        why: the reason where it isn't always caught; "" where it must be.
        hear: plays honest and forged files to a validator of their own, where the attack aims at
            somebody else; by default each forged file is judged for itself.
        aims_at: what must stay as it was, then.
    """

    name: str
    fakes: str
    caught_by: tuple[str, ...]
    ending: Ending
    forge: Forge
    needs: Literal["", "length_budget", "multi_turn", "gold"] = ""
    why: str = ""
    hear: Hear | None = None
    aims_at: str = ""


def write(
    signer: Signer,
    dispatch: Dispatch,
    rows: Sequence[RolloutRow],
    meta: SubmissionMeta,
) -> Attempt:
    """Write and sign rows as an honest worker does.

    Raises:
        FormatError: a row that no reader would take.
    """
    data = write_submission(rows, meta)
    return Attempt(dispatch, tuple(rows), meta, data, statement_over(signer, dispatch, data))


def statement_over(signer: Signer, dispatch: Dispatch, data: bytes) -> bytes:
    """The signed statement over a file."""
    said = {
        "run_id": dispatch.run_id,
        "step": dispatch.step,
        "node": dispatch.node,
        "n": dispatch.n,
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
    }
    return signed_bytes(signer, said)


def with_data(signer: Signer, attempt: Attempt, data: bytes) -> Attempt:
    """The same submission with other bytes, signed."""
    return replace(attempt, data=data, statement=statement_over(signer, attempt.dispatch, data))
