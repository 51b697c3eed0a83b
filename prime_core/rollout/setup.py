"""Everything a worker works with, opened once: store, keys, engine, hosts, planner.

Called by `worker.run`; what is opened is closed by the caller's exit stack. A run directory that
isn't prepared, or an engine other than the prepared one, is refused here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api.errors import RunError
from prime_core.rollout.opening import make_producer, open_pools, read_tasks
from prime_core.rollout.produce import Producer
from prime_core.rollout.seek import OUTSTANDING, Seeker
from prime_core.rollout.submit import complete_statement, submit
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.counter import StepRules, Work
from prime_core.store.identities import own_key
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.policy import drop_cached, fetch_policy, sealed_versions
from prime_core.store.records import Dispatch, Lock
from prime_core.store.submission import RolloutRow, SubmissionMeta
from prime_core.store.trace import Trace
from prime_core.store.view import StoreView

if TYPE_CHECKING:
    from prime_core.api import InferenceEngine, PolicyFiles
    from prime_core.config.sections import RunConfig
    from prime_core.hosting.pool import HostPool

TRAINER_KEY = "trainer.key"


@dataclass(slots=True)
class Equipment:
    """A worker's tools, and the small acts that need several of them."""

    config: RunConfig
    node: str
    store: ObjectStore
    policies: ObjectStore
    view: StoreView
    meta: SubmissionMeta
    signer: Signer
    trainer_address: str
    engine: InferenceEngine
    pools: Mapping[str, HostPool]
    producer: Producer
    seeker: Seeker
    metrics: MetricsLog
    trace: Trace
    _parameters: int = 0

    @property
    def policy_cache(self) -> Path:
        """Where fetched policies lie."""
        return self.config.run.dir / "cache" / self.node

    def fetch(self, version: int) -> PolicyFiles:
        """A sealed version on local disk, every byte checked."""
        return fetch_policy(
            self.policies,
            version,
            self.config.run.dir / layout.MODEL,
            self.policy_cache,
            signer_address=self.trainer_address,
        )

    def drop_policies(self, keep: Collection[int]) -> None:
        """Remove fetched versions that aren't among `keep`."""
        drop_cached(self.policy_cache, keep)

    def dispatch(self, work: Work, digest: bytes) -> Dispatch:
        """Write down what is about to be generated, before the first token."""
        dispatch = Dispatch(
            run_id=self.meta.run_id,
            step=work.step,
            node=self.node,
            n=self.seeker.next_index(work.step),
            policy_version=work.version,
            policy_digest=digest.hex(),
            groups=min(self.config.engine.groups_per_submission, work.groups),
            group_size=self.config.trainer.group_size,
            node_class=self.config.node_class(self.node),
        )
        self.store.put(layout.dispatch_path(*dispatch.key), dispatch.to_json())
        return dispatch

    def submit(self, dispatch: Dispatch, rows: Sequence[RolloutRow]) -> int:
        """Write the submission and its signed statement; returns the file's bytes."""
        return submit(self.store, dispatch, rows, self.meta, self.signer)

    def complete_statements(self) -> None:
        """Add the statements that a killed predecessor left out."""
        self.view.refresh()
        for key, dispatch in sorted(self.view.dispatches.items()):
            if dispatch.node == self.node and key in self.view.submissions:
                complete_statement(self.store, dispatch, self.signer)

    def parameters(self, policy: PolicyFiles) -> int:
        """Parameters of the model, the same for every version."""
        if not self._parameters:
            from prime_core.engines.strict_load import parameter_count

            self._parameters = parameter_count(policy.weights)
        return self._parameters

    def host_metrics(self) -> dict[str, float]:
        """Metrics of the environment hosts, `host/<label>/<name>`."""
        return {
            f"host/{label}/{name}": value
            for label, pool in self.pools.items()
            for name, value in pool.metrics().items()
        }


def engine_metrics(engine: InferenceEngine) -> dict[str, float]:
    """What the engine says of itself (queue, cache, preemptions), as `engine/<name>`."""
    return {
        f"engine/{name}": float(value) for name, value in getattr(engine, "figures", {}).items()
    }


def window_of(engine: InferenceEngine) -> float:
    """Requests that the engine takes at a time now; no limit where it says none.

    One whose cache is too small for its batch takes fewer.
    """
    found: float = getattr(engine, "figures", {}).get("window", 0)
    return found or math.inf


def local_nodes(config: RunConfig, node: str) -> frozenset[str]:
    """The nodes whose unfinished work is still expected: the configured workers and this one."""
    return frozenset({node, *(f"worker-{index}" for index in range(config.engine.workers))})


def outstanding(config: RunConfig) -> int:
    """Submissions of a node that may wait for receipts.

    One, so that a run of one node repeats bit for bit; among several nodes nothing repeats anyway,
    and a validator takes its time.
    """
    alone = config.run.trust == "none" or len(config.swarm.nodes) < 2
    return 1 if alone else OUTSTANDING


async def equip(
    config: RunConfig,
    node: str,
    stack: AsyncExitStack,
    equipment: type[Equipment] | None = None,
) -> Equipment:
    """Open everything; `stack` closes it.

    Args:
        equipment: the class of what is returned; a subclass may fetch, dispatch or submit
            otherwise, as the dishonest nodes of `prime_core.testing` do.

    Raises:
        RunError: the run isn't prepared, or was prepared with another engine.
        PrimeError: the engine or an environment can't start.
    """
    from prime_core.engines import open_engine
    from prime_core.hub import Hub, RunContext

    run_dir = config.run.dir
    store = open_store(config)
    lock = _read_lock(store, run_dir)
    hub = Hub.discover(block=config.plugins.block)
    context = RunContext.from_environment(run_dir)
    metrics, trace = MetricsLog(run_dir, node), Trace(run_dir, node)
    stack.callback(metrics.close)
    stack.callback(trace.close)
    engine = open_engine(config, hub, context)
    stack.callback(engine.close)
    _check_engine(engine.capabilities.fingerprint, lock)
    pools = await open_pools(config, context.cache_dir, stack)
    lists = {label: read_tasks(store, label) for label in pools}
    budget = None
    if config.length_budget is not None:
        budget = hub.make("length_budget", config.length_budget, context)
    producer = make_producer(config, node, engine, pools, lists, budget, trace)
    rules = StepRules.from_config(config)
    view = StoreView(store, rules)
    policies, held = _policies(config, node, store)
    return (equipment or Equipment)(
        config=config,
        node=node,
        store=store,
        policies=policies,
        view=view,
        meta=SubmissionMeta(lock.run_id, lock.digest, lock.engine_fingerprint),
        signer=own_key(run_dir, node),
        trainer_address=Signer.load(run_dir / layout.KEYS / TRAINER_KEY).address,
        engine=engine,
        pools=pools,
        producer=producer,
        seeker=Seeker(
            *(view, rules, node, local_nodes(config, node)),
            *(metrics, trace, held, outstanding(config)),
        ),
        metrics=metrics,
        trace=trace,
    )


def _policies(
    config: RunConfig, node: str, store: ObjectStore
) -> tuple[ObjectStore, Callable[[], Collection[int]] | None]:
    """Where this worker's policies lie, and which are there; None for all that are sealed."""
    if config.shardcast.mode == "local":
        return store, None
    fetched = ObjectStore(str(config.run.dir / layout.client_dir(node)))
    return fetched, lambda: sealed_versions(fetched)


def _read_lock(store: ObjectStore, run_dir: Path) -> Lock:
    if not store.exists(layout.LOCK):
        raise RunError(
            "the run isn't prepared: it has no lock.json",
            where=str(run_dir),
            fix="start it with `prime-core train`",
        )
    return Lock.from_json(store.get(layout.LOCK), where=layout.LOCK)


def _check_engine(fingerprint: str, lock: Lock) -> None:
    if fingerprint != lock.engine_fingerprint:
        raise RunError(
            f"this engine is {fingerprint}, the run was prepared with {lock.engine_fingerprint}",
            where=layout.LOCK,
            fix="install the versions that lock.json names, or start a new run",
        )
