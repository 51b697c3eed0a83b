"""Whose signatures count: local roles by the keys of the run, others by the config."""

from __future__ import annotations

from pathlib import Path

from prime_core.config.sections import RunConfig
from prime_core.signing import Signer
from prime_core.store.identities import (
    local_key,
    make_keys,
    node_identities,
    own_key,
    validator_addresses,
)

ADDRESS = "0x" + "ab" * 20


def config(run_dir: Path, **sections) -> RunConfig:
    return RunConfig.model_validate(
        {
            "run": {"dir": str(run_dir), "trust": "validate"},
            "model": {"path": "model"},
            "environments": [{"use": "arithmetic"}],
            **sections,
        }
    )


def test_without_nodes_the_local_workers_may_submit(tmp_path: Path) -> None:
    plain = config(tmp_path, engine={"workers": 2})
    assert {n: one.address for n, one in node_identities(plain).items()} == {
        "worker-0": None,
        "worker-1": None,
    }
    make_keys(plain)
    known = node_identities(plain)
    assert known["worker-1"].address == Signer.load(local_key(tmp_path, "worker-1")).address
    assert own_key(tmp_path, "worker-1").address == known["worker-1"].address  # never made anew


def test_nodes_of_the_config_have_its_addresses_or_local_keys(tmp_path: Path) -> None:
    nodes = [
        {"address": ADDRESS, "provider": "away", "class": "big", "stake": 5},
        {"name": "mine", "provider": "home"},
    ]
    named = config(tmp_path, swarm={"nodes": nodes}, engine={"workers": 2})
    make_keys(named)
    known = node_identities(named)
    assert known.keys() == {ADDRESS, "mine"}
    stranger = known[ADDRESS]
    assert (stranger.address, stranger.provider, stranger.node_class, stranger.stake) == (
        ADDRESS,
        "away",
        "big",
        5,
    )
    assert known["mine"].address == Signer.load(local_key(tmp_path, "mine")).address
    assert not local_key(tmp_path, "worker-0").exists()


def test_validators_are_the_local_ones_and_those_named(tmp_path: Path) -> None:
    several = config(tmp_path, validation={"processes": 2, "addresses": [ADDRESS]})
    assert validator_addresses(several) == {ADDRESS}
    make_keys(several)
    local = {Signer.load(local_key(tmp_path, f"validator-{i}")).address for i in range(2)}
    assert validator_addresses(several) == {ADDRESS, *local}
