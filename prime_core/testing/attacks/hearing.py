"""A validator of its own, and the store in which it finds files: for attacks on somebody else.

`Judge` judges one file for itself; here files lie under their names, in the validator's own order,
and what it learnt from one decides about the next. Verdicts are the validator's own.
"""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import NodeFacts
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.records import Key
from prime_core.store.verdicts import Verdict, VerdictBook
from prime_core.testing.attacks.attack import Attempt
from prime_core.validation.attempts import Attempts
from prime_core.validation.pending import Pending
from prime_core.validation.validator import Validator

if TYPE_CHECKING:
    from prime_core.testing.attacks.world import World

logger = logging.getLogger("prime_core.validator")

ENDLESS = 10**6  # steps, and rejections that a node may have in one: nothing is over here


class Hearing:
    """One validator and its store.

    Args:
        strangers: addresses of nodes beside the harness's own, by name.
        decoys: show one after every accepted file.
    """

    def __init__(
        self, world: World, strangers: Mapping[str, str] | None = None, *, decoys: bool = False
    ) -> None:
        folder = Path(tempfile.mkdtemp(dir=world.folder))
        store, tools = ObjectStore(str(folder)), world.tools
        store.put(layout.policy_seal_path(world.newest_version), b"")
        own = {tools.signer.address}
        rules = replace(tools.rules, steps=ENDLESS)
        nodes = {
            name: replace(world.node, name=name, address=address)
            for name, address in (strangers or {}).items()
        }
        self._store = store
        self._validator = Validator(
            replace(
                tools,
                store=store,
                rules=rules,
                nodes={world.node.name: world.node, **nodes},
                policy=replace(tools.policy, max_rejected=ENDLESS),
                decoy_every=int(decoys),
                book=VerdictBook(store, tools.run_id, own),
                pending=Pending(rules, tools.signer.address, own, 0.0, 0.0),
                attempts=Attempts(folder / "attempts"),
                log=lambda *_: None,
                trace=None,
            )
        )
        self._book = VerdictBook(store, tools.run_id, own)

    def submit(self, attempts: Sequence[Attempt]) -> None:
        """Put files where their nodes put them."""
        for each in attempts:
            key = each.dispatch.key
            self._store.put(layout.dispatch_path(*key), each.dispatch.to_json())
            if each.statement is not None:
                self._store.put(layout.submission_signature_path(*key), each.statement)
            self._store.put(layout.submission_path(*key), each.data)

    def judge(self) -> None:
        """Let the validator judge whatever waits.

        Raises:
            PrimeError: what ends a validator.
        """
        before = logger.level
        logger.setLevel(logging.CRITICAL)  # it would name each file that it rejects
        try:
            while self._validator.poll():
                pass
        finally:
            logger.setLevel(before)

    def verdict(self, key: Key) -> Verdict | None:
        """The verdict on a submission; None where there is none."""
        self._book.refresh(key[0])
        return next(iter(self._book.of(key)), None)

    def record(self, attempt: Attempt) -> NodeFacts:
        """What the validator knows of a file's node."""
        args = (attempt.dispatch.key, attempt.dispatch, attempt.data, attempt.sha256, bytes(32))
        return self._validator.open_file(*args)[0].node
