"""What a validator works with. Made by `setup` from a run config, used by `validator`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prime_core.api import NodeFacts, RunFacts
from prime_core.signing import Signer
from prime_core.store.counter import StepRules
from prime_core.store.objects import ObjectStore
from prime_core.store.verdicts import VerdictBook
from prime_core.validation.attempts import Attempts
from prime_core.validation.auditing import Policy
from prime_core.validation.judging import NamedCheck
from prime_core.validation.pending import Pending

if TYPE_CHECKING:
    from prime_core.store.trace import Trace
    from prime_core.validation.reading import Reader
    from prime_core.validation.recompute import Recomputer

Log = Callable[[int | None, dict[str, Any]], None]


@dataclass(frozen=True)
class ValidatorTools:
    """What a validator works with; `setup` makes it from a run config.

    Attributes:
        checks: in order.
        facts_of: what the run demands of a node class.
        nodes: who may submit, by name; records aren't filled in.
        policy: how much is checked in full.
        decoy_every: one decoy in about so many files.
    """

    store: ObjectStore
    run_id: str
    rules: StepRules
    signer: Signer
    checks: Sequence[NamedCheck]
    facts_of: Callable[[str], RunFacts]
    nodes: Mapping[str, NodeFacts]
    default_class: str
    policy: Policy
    decoy_every: int
    recomputer: Recomputer
    reader: Reader
    book: VerdictBook
    pending: Pending
    attempts: Attempts
    log: Log
    trace: Trace | None = None
