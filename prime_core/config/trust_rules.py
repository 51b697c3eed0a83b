"""Combinations of trust, checks, validators and nodes that can't work, each with its fix.

Part of `prime_core.config.rules`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prime_core.config.clash import Clash
from prime_core.config.sections import RunConfig


def _checks_need_validators(config: RunConfig) -> Iterator[Clash]:
    if config.run.trust == "none" and config.checks:
        yield Clash(
            (("checks",), ("run", "trust")),
            'checks are asked by validators, and trust = "none" has none',
            'set run.trust = "validate", or remove [[checks]]',
        )
    if config.run.trust == "validate" and not (
        config.validation.processes or config.validation.addresses
    ):
        yield Clash(
            (("validation", "processes"), ("run", "trust")),
            "nobody gives a verdict: no local validator, and no other's address",
            "set validation.processes to 1, or name validation.addresses",
        )


def _classes(config: RunConfig) -> Iterator[Clash]:
    for index, node in enumerate(config.swarm.nodes):
        if config.engine.classes and node.node_class not in config.engine.classes:
            yield Clash(
                (("swarm", "nodes", index, "class"), ("engine", "classes")),
                f"class {node.node_class} isn't one of engine.classes: "
                f"{', '.join(sorted(config.engine.classes))}",
                f"add [engine.classes.{node.node_class}], or give the node another class",
            )


def _packing(config: RunConfig) -> Iterator[Clash]:
    for index, node in enumerate(config.swarm.nodes):
        limit = config.engine.token_limit(node.node_class)
        needed = config.engine.max_prompt_tokens + limit
        if node.node_class in config.engine.classes and config.trainer.pack_tokens < needed:
            yield Clash(
                (("trainer", "pack_tokens"), ("swarm", "nodes", index, "class")),
                f"pack_tokens {config.trainer.pack_tokens} can't hold the longest rollout of class "
                f"{node.node_class}: {config.engine.max_prompt_tokens} prompt and {limit} "
                "completion tokens",
                f"raise trainer.pack_tokens to {needed}, or give the node another class",
            )


def _room_for_a_batch(config: RunConfig) -> Iterator[Clash]:
    wanted = config.trainer.groups_per_step
    swarm = config.swarm
    nodes = {f"worker-{index}": "local" for index in range(config.engine.workers)}
    if swarm.nodes:
        nodes = {node.label: node.provider for node in swarm.nodes}
    for key, share, owners in (
        ("max_node_share", swarm.max_node_share, set(nodes)),
        ("max_provider_share", swarm.max_provider_share, set(nodes.values())),
    ):
        if share == 1.0 or not owners:
            continue
        room = max(1, int(share * wanted)) * len(owners)
        if room < wanted:
            yield Clash(
                (("swarm", key), ("swarm", "nodes")),
                f"with {key} {share} the {len(owners)} known can fill {room} of a batch's "
                f"{wanted} groups, so that no step would ever close",
                f"raise swarm.{key}, or name more in [[swarm.nodes]]",
            )


TRUST_RULES: tuple[Callable[[RunConfig], Iterator[Clash]], ...] = (
    _checks_need_validators,
    _classes,
    _packing,
    _room_for_a_batch,
)
