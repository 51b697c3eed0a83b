"""Combinations that can't work are refused; those that can are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.api import ConfigError
from prime_core.config.load import load

BASE = """\
[model]
path = "model"
[[environments]]
use = "arithmetic"
with = { digits = 2 }
"""


def refusals(directory: Path, *overrides: str) -> list[str]:
    path = directory / "run.toml"
    path.write_text(BASE)
    try:
        load(path, overrides, check_files=False)
    except ConfigError as error:
        return [f"{problem.where}: {problem.what}" for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("overrides", "what"),
    [
        (["trainer.optimizer_steps=3"], "can't be split evenly"),
        (["trainer.groups_per_step=6", "trainer.optimizer_steps=4"], "can't be split evenly"),
        (
            ["trainer.groups_per_step=2", "trainer.group_size=2", "trainer.ranks=3"],
            "3 ranks share 2 rollouts",
        ),
        (["trainer.pack_tokens=1279"], "can't hold the longest rollout"),
        (["engine.max_tokens=2000"], "can't hold the longest rollout"),
        (
            ["engine.node_class=big", "engine.classes.big.max_tokens=2000"],
            "can't hold the longest rollout",
        ),
        (["engine.classes.big.max_tokens=100"], "node_class default isn't one of"),
        (["async.level=3", "async.max=2"], "level 3 is above max 2"),
        (["async.max=1"], "level 2 is above max 1"),
        (["engine.temperature=1e31"], "at most 1"),
        (["engine.temperature=1e-7"], "at least 1e-06"),
        (["engine.top_p=0.95"], "truncates the sampler"),
        (["engine.top_k=50"], "truncates the sampler"),
        (["engine.min_p=0.1"], "truncates the sampler"),
        (["environments.1.use=arithmetic"], "two environments are labelled arithmetic"),
        (
            ["environments.1.use=x", "environments.1.name=arithmetic"],
            "two environments are labelled arithmetic",
        ),
        (
            ["eval.environments.0.use=arithmetic", "eval.environments.0.with.digits=2"],
            "nothing is held out",
        ),
        (["eval.every=5"], "no environment to evaluate on"),
        (["store.url=memory://x"], "can't be shared"),
        (["store.url=s3://me:pass@bucket/x"], "holds a password"),
        (["store.keep_policies=3"], "deletes versions"),
        (["environments.0.with.x=nan"], "is nan"),
        (["environments.0.with.x=[1, {y = nan}]"], "is nan"),
    ],
)
def test_impossible_combinations_are_refused(
    tmp_path: Path, overrides: list[str], what: str
) -> None:
    found = refusals(tmp_path, *overrides)
    assert len(found) == 1
    assert what in found[0]
    assert found[0].startswith("--set ")
    assert "s3://" not in found[0]


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["async.level=0"],
        ["async.level=4", "async.max=6"],
        ["trainer.optimizer_steps=1", "trainer.groups_per_step=1"],
        ["trainer.pack_tokens=1280"],
        ["engine.top_p=1.0", "engine.top_k=0"],
        ["engine.node_class=big", "engine.classes.big.max_tokens=1024"],
        ["environments.1.use=arithmetic", "environments.1.name=b"],
        ["eval.environments.0.use=arithmetic", "eval.environments.0.with.digits=3"],
        ["eval.environments.0.use=arithmetic", "eval.every=2"],
        ["store.url=s3://bucket/x"],
        ["loss.kl_coef=0.1", "model.dtype=bfloat16"],
        ["environments.0.with.x=inf"],
    ],
)
def test_possible_combinations_load(tmp_path: Path, overrides: list[str]) -> None:
    assert refusals(tmp_path, *overrides) == []


def test_a_clash_shows_the_key_that_was_written(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(BASE + "[trainer]\ngroups_per_step = 9\n")
    with pytest.raises(ConfigError) as caught:
        load(path, check_files=False)
    assert caught.value.problems[0].where == f"{path}:7"
