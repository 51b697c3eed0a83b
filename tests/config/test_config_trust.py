"""Trust, checks, validators and nodes: what can't work is refused, the rest has its meaning."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.api import ConfigError
from prime_core.config.load import load
from prime_core.config.sections import DEFAULT_CHECKS, RunConfig
from prime_core.store.shares import Caps

BASE = """\
[run]
trust = "validate"
[model]
path = "model"
[engine.classes.default]
max_tokens = 100
[engine.classes.big]
max_tokens = 200
[trainer]
groups_per_step = 8
[[environments]]
use = "arithmetic"
[[swarm.nodes]]
name = "a"
provider = "home"
[[swarm.nodes]]
address = "0xABCDEFabcdef00000000000000000000000000AB"
provider = "away"
class = "big"
stake = 7
"""


def loaded(directory: Path, *overrides: str) -> RunConfig:
    path = directory / "run.toml"
    path.write_text(BASE)
    return load(path, overrides, check_files=False).config


def refusals(directory: Path, *overrides: str) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(directory, *overrides)
    return str(caught.value)


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (["run.trust=none", "checks.0.use=schema"], "checks are asked by validators"),
        (["validation.processes=0"], "nobody gives a verdict"),
        (["swarm.nodes.0.class=huge"], "class huge isn't one of"),
        (["swarm.max_node_share=0.3"], "no step would ever close"),
        (["swarm.max_provider_share=0.4"], "no step would ever close"),
        (["trainer.pack_tokens=1200"], "longest rollout of class big"),
        (["swarm.nodes.1.address='0x12'"], "is no address"),
        (["validation.addresses=['x']"], "is no address"),
        (["swarm.nodes.1.name=a"], "stands twice"),
        (["swarm.nodes.2.provider=x"], "neither name nor address"),
        (["validation.audit_share=0"], "audit_share must be above 0"),
        (["run.trust=some"], "must be"),
    ],
)
def test_what_cannot_work_is_refused(tmp_path: Path, overrides: list[str], what: str) -> None:
    assert what in refusals(tmp_path, *overrides)


def test_a_nodes_name_is_its_address_unless_it_has_one(tmp_path: Path) -> None:
    config = loaded(
        tmp_path, "validation.processes=0", "validation.addresses=['0x" + "AB" * 20 + "']"
    )
    labels = [node.label for node in config.swarm.nodes]
    assert labels == ["a", "0xabcdefabcdef00000000000000000000000000ab"]
    assert config.validation.addresses == ["0x" + "ab" * 20]
    assert [config.node_class(name) for name in (*labels, "worker-0")] == [
        "default",
        "big",
        "default",
    ]


def test_all_built_in_checks_are_asked_unless_the_config_chooses(tmp_path: Path) -> None:
    assert [check.use for check in loaded(tmp_path).sanity_checks] == list(DEFAULT_CHECKS)
    chosen = loaded(tmp_path, "checks.0.use=replay", "checks.1.use=schema").sanity_checks
    assert [check.use for check in chosen] == ["replay", "schema"]
    assert loaded(tmp_path, "run.trust=none").sanity_checks == []


def test_caps_are_groups_of_a_batch(tmp_path: Path) -> None:
    assert Caps.from_config(loaded(tmp_path)) is None
    caps = Caps.from_config(loaded(tmp_path, "swarm.max_node_share=0.6"))
    assert caps is not None
    assert (caps.node, caps.provider) == (4, 8)
    assert caps.owner("a") == "home"
    assert caps.owner("unknown") != caps.owner("other")
