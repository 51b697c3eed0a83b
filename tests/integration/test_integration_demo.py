"""The demo: what it prints, that it is balanced, and that held-out tasks stay held out."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from integration_support import prime_core

from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting.pool import HostPool

pytestmark = pytest.mark.integration

ARITHMETIC = {"kind": "addition", "digits": 2, "reversed": True}


async def held_out() -> tuple[set[str], set[str]]:
    """Task ids and prompts of the demo's held-out side, as its environment gives them."""
    choice = EnvironmentChoice.model_validate(
        {"use": "arithmetic", "with": {**ARITHMETIC, "split": "test"}}
    )
    pool = await HostPool.open(
        choice,
        PluginChoice(use="task", version="", params={}),
        HostingSection(),
        cache_dir=Path("unused"),
        run_dir=None,
    )
    try:
        tasks = await pool.tasks(range(pool.description.task_count))
    finally:
        await pool.close()
    return {task.id for task in tasks}, {task.prompt[0].content for task in tasks}


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The demo, cut short after its first minutes: everything but the accuracy at its end."""
    out = tmp_path_factory.mktemp("demo") / "out"
    done = prime_core("demo", "--out", out, "--minutes", "1", "--json")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return out, result


def test_the_result_says_what_the_readme_says(shown: tuple[Path, dict[str, Any]]) -> None:
    out, result = shown
    assert 0.2 < result["accuracy_before"] < 0.75
    assert 0.0 < result["accuracy_after"] <= 1.0
    assert result["steps"] >= 1
    assert result["held_out_tasks"] == 512
    assert {"warmup", "train", "total"} == result["seconds"].keys()
    assert "trained" in result["outcomes"]
    assert "trainer" in result["idle_share"]
    for name in ("png", "html", "trace"):
        assert Path(result["files"][name]).stat().st_size > 1000
    balance = json.loads(prime_core("outcomes", out / "run", "--json").stdout)
    assert balance["holds"]
    assert balance["total"]["in_flight"] == balance["total"]["carried"] == 0


def test_no_held_out_task_occurs_in_warm_up_or_training(
    shown: tuple[Path, dict[str, Any]],
) -> None:
    out, _ = shown
    ids, prompts = asyncio.run(held_out())
    assert len(ids) > 900
    learned = {prompt for prompt, _ in json.loads((out / "warmup-job.json").read_text())["pairs"]}
    assert len(learned) > 8000
    assert not learned & prompts
    trained = set(json.loads((out / "run" / "tasks" / "arithmetic.json").read_text())["task_ids"])
    assert len(trained) == len(learned)
    assert not trained & ids


def test_a_used_directory_is_refused(shown: tuple[Path, dict[str, Any]]) -> None:
    out, _ = shown
    refused = prime_core("demo", "--out", out, code=2)
    assert "--out" in refused.stderr


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_demo_passes_three_quarters_on_held_out_tasks(tmp_path: Path, seed: int) -> None:
    done = prime_core("demo", "--out", tmp_path / "out", "--seed", str(seed), "--json", limit=1500)
    result = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(result))
    assert result["accuracy_after"] > 0.75
    assert result["accuracy_after"] > result["accuracy_before"] + 0.2
