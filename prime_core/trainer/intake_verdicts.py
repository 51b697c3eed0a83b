"""The intake's gate under trust = "validate": what a submission's verdict says, or that it waits.

Asked before the intake judges a submission. A receipt follows a verdict over the very bytes that
were read; without one the submission waits until no step can take it, and is late.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prime_core.store.identities import validator_addresses
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Key
from prime_core.store.verdicts import VerdictBook

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the verdicts say of some bytes.

    Attributes:
        reason: why they are refused, check name first; "" where accepted.
        dropped: groups that may not train, with the check and its reason.
    """

    reason: str = ""
    dropped: dict[str, str] = field(default_factory=dict)


class VerdictGate:
    """The verdicts of one run, as its intake reads them."""

    def __init__(self, book: VerdictBook) -> None:
        self._book = book

    @classmethod
    def open(cls, config: RunConfig, store: ObjectStore, run_id: str) -> VerdictGate:
        """The gate of a prepared run."""
        return cls(VerdictBook(store, run_id, validator_addresses(config)))

    def refresh(self, step: int) -> None:
        """Read the verdicts of a step that are new."""
        self._book.refresh(step)

    def is_ready(self, key: Key, receipts: Collection[Key]) -> bool:
        """Whether a submission has a verdict and its predecessor a receipt."""
        step, node, n = key
        return bool(self._book.of(key)) and (n == 0 or (step, node, n - 1) in receipts)

    def rule(self, key: Key, sha256: str) -> Ruling:
        """What is to be done with the bytes of a submission that is ready."""
        verdicts = self._book.of(key)
        # One that accepts these bytes counts, whatever was said about others of the name.
        for verdict in verdicts:
            if verdict.decision == "accepted" and verdict.sha256 == sha256:
                return Ruling(
                    dropped={
                        group.id: f"{group.check}: {group.reason}" for group in verdict.dropped
                    }
                )
        for verdict in verdicts:
            if verdict.decision == "rejected":
                return Ruling(f"{verdict.check}: {verdict.reason}")
        return Ruling("identity: the bytes aren't those that the verdict accepted")
