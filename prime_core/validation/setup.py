"""Opens what a validator works with: keys, checks, engine, hosts, the run's facts.

Called by `validator.run` and `prime-core validate`; what is opened is closed with the context. A
run that isn't prepared, or that validates nothing, is refused here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from prime_core.api import LengthBudget, NodeFacts, RunError, RunFacts
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.checks import Limits
from prime_core.store.counter import StepRules
from prime_core.store.identities import (
    local_key,
    node_identities,
    own_key,
    validator_addresses,
    validator_name,
)
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.policy import drop_cached, fetch_policy, read_seal
from prime_core.store.records import Lock, TaskList
from prime_core.store.run_facts import (
    environment_shares,
    limits_of,
    read_lock,
    read_task_lists,
)
from prime_core.store.submission import Bounds
from prime_core.store.trace import Trace
from prime_core.store.verdicts import VerdictBook
from prime_core.validation.attempts import Attempts
from prime_core.validation.auditing import Policy
from prime_core.validation.conversation import Endings
from prime_core.validation.judging import NamedCheck
from prime_core.validation.pending import Pending
from prime_core.validation.reading import Reader
from prime_core.validation.recompute import EventLoop, Recomputer, of_store
from prime_core.validation.rescoring import Rescorer
from prime_core.validation.tools import ValidatorTools

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import RunConfig
    from prime_core.engines.planning import Planner
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import Hub, RunContext

TRAINER_KEY = "trainer"
POLICIES_KEPT = 2


@contextmanager
def open_tools(
    config: RunConfig, index: int = 0, *, signer: Signer | None = None
) -> Iterator[ValidatorTools]:
    """The tools of validator `index` of a prepared run.

    Args:
        signer: another key than the validator's own: nothing is logged or remembered then.

    Raises:
        RunError: the run takes no verdicts.
        PrimeError: it isn't prepared, or engine, hosts or a plugin can't be opened.
    """
    from prime_core.hub import Hub, RunContext

    if config.run.trust == "none" and signer is None:
        raise RunError(
            'nobody takes a verdict in a run with trust = "none"',
            where="[run] trust",
            fix='set run.trust = "validate"',
        )
    with ExitStack() as stack:
        name = validator_name(index) if signer is None else "validate"
        store = open_store(config)
        lock = read_lock(config, store)
        tasks = read_task_lists(config, store, lock)
        hub = Hub.discover(block=config.plugins.block)
        context = RunContext.from_environment(config.run.dir)
        limits = limits_of(config, lock, tasks)
        reader = stack.enter_context(Reader(_bounds(config, limits)))
        loop = EventLoop()
        stack.callback(loop.close)
        pools = _open_pools(config, context, loop, stack)
        recomputer = _recomputer(config, store, lock, tasks, hub, context, pools, loop, name, stack)
        log, trace = _records_of(config, name, stack) if signer is None else (_silent, None)
        own = signer or own_key(config.run.dir, name)
        validators = validator_addresses(config)
        rules = StepRules.from_config(config)
        settings = config.validation
        yield ValidatorTools(
            store=store,
            run_id=lock.run_id,
            rules=rules,
            signer=own,
            checks=checks_of(config, hub, context),
            facts_of=_facts(config, lock, limits, pools),
            nodes=_nodes(config),
            default_class=config.engine.node_class,
            policy=Policy(
                settings.audit_share,
                settings.newcomer_files,
                settings.spot_groups,
                settings.max_rejected,
            ),
            decoy_every=settings.decoy_every,
            recomputer=recomputer,
            reader=reader,
            book=VerdictBook(store, lock.run_id, validators),
            pending=Pending(
                rules,
                own.address,
                validators | {own.address},
                settings.takeover_s,
                settings.statement_wait_s,
            ),
            attempts=Attempts(config.run.dir / layout.VALIDATION / name / "attempts"),
            log=log,
            trace=trace,
        )


def checks_of(config: RunConfig, hub: Hub, context: RunContext) -> list[NamedCheck]:
    """The selected checks, in order; PluginError where one can't be made."""
    return [
        NamedCheck(choice.use, hub.make("sanity_check", choice, context))
        for choice in config.sanity_checks
    ]


def _silent(step: int | None, values: dict[str, Any]) -> None:
    """A log of nothing."""


def _records_of(
    config: RunConfig, name: str, stack: ExitStack
) -> tuple[Callable[[int | None, dict[str, Any]], None], Trace]:
    metrics, trace = MetricsLog(config.run.dir, name), Trace(config.run.dir, name)
    stack.callback(metrics.close)
    stack.callback(trace.close)

    def log(step: int | None, values: dict[str, Any]) -> None:
        metrics.log(step, **values)

    return log, trace


def _nodes(config: RunConfig) -> dict[str, NodeFacts]:
    return {
        name: NodeFacts(name, known.address, known.provider, known.node_class, known.stake)
        for name, known in node_identities(config).items()
    }


def _bounds(config: RunConfig, limits: Limits) -> Bounds:
    """What the largest honest file of the run holds."""
    most = max([limits.default_token_limit, *limits.token_limits.values()])
    return Bounds(
        rows=config.engine.groups_per_submission * config.trainer.group_size,
        tokens=limits.max_prompt_tokens + most,
    )


def _facts(
    config: RunConfig, lock: Lock, limits: Limits, pools: Mapping[str, HostPool]
) -> Callable[[str], RunFacts]:
    from prime_core.engines.stop_tokens import stop_tokens

    stop_ids = stop_tokens(config.run.dir / layout.MODEL)
    fixed = frozenset(label for label, pool in pools.items() if pool.description.info.deterministic)
    answering = frozenset(label for label, pool in pools.items() if pool.description.multi_turn)

    @cache
    def facts_of(node_class: str) -> RunFacts:
        most = limits.token_limit(node_class)
        return RunFacts(
            run_id=lock.run_id,
            lock_digest=lock.digest,
            engine_fingerprint=lock.engine_fingerprint,
            temperature=limits.temperature,
            max_tokens=most,
            max_prompt_tokens=limits.max_prompt_tokens,
            max_total_tokens=limits.max_prompt_tokens + most,
            max_turns=limits.max_turns,
            vocabulary=limits.vocabulary,
            stop_ids=stop_ids,
            score_ranges=dict(limits.score_ranges),
            deterministic=fixed,
            max_groups=config.engine.groups_per_submission,
            group_size=config.trainer.group_size,
            dtype=str(config.engine.params.get("dtype", config.model.dtype)),
            multi_turn=answering,
        )

    return facts_of


def _recomputer(
    config: RunConfig,
    store: ObjectStore,
    lock: Lock,
    tasks: dict[str, TaskList],
    hub: Hub,
    context: RunContext,
    pools: Mapping[str, HostPool],
    loop: EventLoop,
    name: str,
    stack: ExitStack,
) -> Recomputer:
    from prime_core.engines import open_engine
    from prime_core.engines.chat import ChatFormat
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.engines.planning import Planner
    from prime_core.engines.stop_tokens import stop_tokens

    model_dir = config.run.dir / layout.MODEL
    engine = open_engine(
        config.model_copy(update={"engine": config.recomputing_engine}), hub, context
    )
    stack.callback(engine.close)
    chat = ChatFormat(load_tokenizer(model_dir, config.model.chat_template))
    endings = Endings(
        stop_tokens(model_dir), config.engine.max_prompt_tokens, config.engine.max_turns
    )
    budget: LengthBudget | None = None
    if config.length_budget is not None:
        budget = hub.make("length_budget", config.length_budget, context)
    trainer = Signer.load(local_key(config.run.dir, TRAINER_KEY)).address
    cache = config.run.dir / "cache" / name

    def fetch(version: int) -> PolicyFiles:
        drop_cached(cache, keep={version - back for back in range(POLICIES_KEPT)})
        return fetch_policy(store, version, model_dir, cache, signer_address=trainer)

    def planner_of(node_class: str) -> Planner:
        return Planner(
            pools=pools,
            task_lists=tasks,
            chat=chat,
            budget=budget,
            node_class=node_class,
            max_prompt_tokens=config.engine.max_prompt_tokens,
        )

    return Recomputer(
        run_id=lock.run_id,
        engine=engine,
        fetch=of_store(fetch),
        seal=of_store(lru_cache(maxsize=None)(lambda version: read_seal(store, version))),
        shares=environment_shares(config, tasks),
        planner_of=planner_of,
        rescorer=Rescorer(pools, chat, endings),
        loop=loop,
        temperature=config.engine.temperature,
    )


def _open_pools(
    config: RunConfig, context: RunContext, loop: EventLoop, stack: ExitStack
) -> dict[str, HostPool]:
    from prime_core.hosting.pool import HostPool

    pools: dict[str, HostPool] = {}
    for environment in config.environments:
        pool = loop.run(
            HostPool.open(
                environment,
                config.reward,
                config.hosting,
                cache_dir=context.cache_dir,
                run_dir=config.run.dir,
                block=config.plugins.block,
            )
        )
        stack.callback(_close, pool, loop)
        pools[environment.label] = pool
    return pools


def _close(pool: HostPool, loop: EventLoop) -> None:
    loop.run(pool.close())
