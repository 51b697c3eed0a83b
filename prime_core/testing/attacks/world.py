"""One prepared run as the harness sees it: the validator's tools, a node's key, policy versions.

Opened from a run directory, in which it changes nothing. Versions are the harness's own: the run's
newest weights are the claimed policy, and an attack may add more.
"""

from __future__ import annotations

import hashlib
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.api import (
    InferenceEngine,
    NodeFacts,
    PolicyFiles,
    Prefill,
    RunError,
    RunFacts,
)
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.policy import sealed_versions
from prime_core.store.records import Dispatch
from prime_core.store.schema import RolloutRow, SubmissionMeta
from prime_core.testing.attacks.memo import MemoEngine, MemoRecomputer
from prime_core.validation.recompute import prefill_request

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prime_core.config.sections import RunConfig
    from prime_core.hub import Hub, RunContext
    from prime_core.testing.attacks.attack import Attempt
    from prime_core.validation.validator import ValidatorTools

CLAIMED = 64  # the honest version; far from 0, so that every lag has room


@dataclass
class World:
    """What honest and dishonest nodes work with.

    Attributes:
        tools: the validator's; its recomputer remembers.
        node: the node that everything is submitted by; its key is the harness's own.
        other: key of another node, from which files are copied.
        others: honest submissions under other names, that attacks copy; made when needed.
        policies: by version, each with its seal as digest.
        folder: scratch space of the harness.
    """

    config: RunConfig
    hub: Hub
    context: RunContext
    tools: ValidatorTools
    recomputer: MemoRecomputer
    memo: MemoEngine
    node: NodeFacts
    signer: Signer
    other: Signer
    meta: SubmissionMeta
    tokenizer: Any
    policies: dict[int, PolicyFiles]
    folder: Path
    stack: ExitStack
    others: list[Attempt] = field(default_factory=list)
    _engines: dict[tuple[tuple[str, Any], ...], InferenceEngine] = field(default_factory=dict)

    @property
    def facts(self) -> RunFacts:
        """What the run demands of the node's class."""
        return self.tools.facts_of(self.node.node_class)

    @property
    def base(self) -> PolicyFiles:
        """The claimed policy."""
        return self.policies[CLAIMED]

    @property
    def newest_version(self) -> int:
        """The newest version that is sealed."""
        return max(self.policies)

    def add_policy(self, policy: PolicyFiles) -> int:
        """Seal another version, newer than all; its number."""
        version = self.newest_version + 1
        self.policies[version] = replace(policy, version=version, digest=_seal(version))
        return version

    def step_of(self, version: int) -> int:
        """The first step that a version may serve."""
        return version + self.config.async_.level

    def dispatch(self, n: int, version: int = CLAIMED, **changes: Any) -> Dispatch:
        """What the node announces as its submission n."""
        values = {
            "run_id": self.tools.run_id,
            "step": self.step_of(version),
            "node": self.node.name,
            "n": n,
            "policy_version": version,
            "policy_digest": self.policies[version].digest.hex(),
            "groups": self.config.engine.groups_per_submission,
            "group_size": self.config.trainer.group_size,
            "node_class": self.node.node_class,
        }
        return Dispatch(**{**values, **changes})

    def engine(self, **params: Any) -> InferenceEngine:
        """An engine of the node's, with some parameters other than the config's; kept open.

        Args:
            use: another inference engine, whose parameters are then all that it gets.
        """
        from prime_core.engines import open_engine

        key = tuple(sorted(params.items()))
        if key not in self._engines:
            section, own = self.config.engine, dict(params)
            kept = {} if "use" in own else section.params
            use = own.pop("use", section.use)
            changed = section.model_copy(update={"use": use, "params": {**kept, **own}})
            config = self.config.model_copy(update={"engine": changed})
            engine = open_engine(config, self.hub, self.context)
            self.stack.callback(engine.close)
            self._engines[key] = engine
        return self._engines[key]

    def prefill(self, rows: Sequence[RolloutRow], version: int = CLAIMED) -> list[Prefill]:
        """The claimed policy's forward passes of rows, as a node may make them too."""
        if self.recomputer.loaded != version:
            self.memo.load(self.policies[version])
            self.recomputer.loaded = version
        temperature = self.recomputer.temperature
        return self.memo.prefill([prefill_request(row, temperature) for row in rows])

    def hidden_states(
        self, rows: Sequence[RolloutRow], version: int = CLAIMED
    ) -> list[NDArray[np.float32]]:
        """[N, hidden] of the model's own tokens of each row."""
        return [
            prefill.hidden_states[np.asarray(row.completion_mask, dtype=bool)]
            for row, prefill in zip(rows, self.prefill(rows, version), strict=True)
        ]

    def keep(self) -> None:
        """Never forget what was computed so far: the honest submissions that attacks spoil."""
        self.memo.keep()
        self.recomputer.keep()

    def forget(self) -> None:
        """Drop what was computed about files, but what is kept."""
        self.memo.forget()
        self.recomputer.forget()


def _seal(version: int) -> bytes:
    return hashlib.sha256(f"attack harness, version {version}".encode()).digest()


@contextmanager
def open_world(config: RunConfig) -> Iterator[World]:
    """The world of a prepared run with trust = "validate".

    Raises:
        RunError: the run validates nothing.
        PrimeError: it isn't prepared, or engine, hosts or a plugin can't be opened.
    """
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.hub import Hub, RunContext
    from prime_core.store.run_facts import read_lock
    from prime_core.validation.setup import open_tools

    if config.run.trust != "validate":
        raise RunError(
            "nothing is checked in this run, so every attack passes",
            where="[run] trust",
            fix='prepare a run with run.trust = "validate"',
        )
    with ExitStack() as stack:
        signer = Signer(secrets.token_bytes(32))
        tools = stack.enter_context(open_tools(config, signer=Signer(secrets.token_bytes(32))))
        base = _newest(config, tools)
        policies = {CLAIMED: replace(base, version=CLAIMED, digest=_seal(CLAIMED))}
        memo = MemoEngine(tools.recomputer.engine)
        recomputer = MemoRecomputer.around(
            tools.recomputer,
            engine=memo,
            fetch=lambda version: policies[version],
            seal=lambda version: policies[version].digest,
        )
        lock = read_lock(config, tools.store)
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="attacks-"))
        yield World(
            config=config,
            hub=Hub.discover(block=config.plugins.block),
            context=RunContext.from_environment(config.run.dir),
            tools=replace(tools, recomputer=recomputer),
            recomputer=recomputer,
            memo=memo,
            node=_node(tools, signer),
            signer=signer,
            other=Signer(secrets.token_bytes(32)),
            meta=SubmissionMeta(lock.run_id, lock.digest, lock.engine_fingerprint),
            tokenizer=load_tokenizer(config.run.dir / layout.MODEL, config.model.chat_template),
            policies=policies,
            folder=Path(folder),
            stack=stack,
        )


def _newest(config: RunConfig, tools: ValidatorTools) -> PolicyFiles:
    """The run's newest sealed policy, or the model that it starts with."""
    from prime_core.engines.model_files import local_policy

    sealed = sealed_versions(tools.store)
    if sealed:
        return tools.recomputer.fetch(sealed[-1])
    return local_policy(config.run.dir / layout.MODEL)


def _node(tools: ValidatorTools, signer: Signer) -> NodeFacts:
    """A node that the run knows, with the harness's key."""
    if tools.nodes:
        return replace(next(iter(tools.nodes.values())), address=signer.address)
    return NodeFacts("worker-0", signer.address, "", tools.default_class, 0)
