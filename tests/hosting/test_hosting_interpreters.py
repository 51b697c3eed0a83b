"""Environments whose dependencies clash, each in the interpreter that the config names."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from hosting_support import make_interpreter, run, said

from prime_core.api import HostError, Score
from prime_core.config.sections import EnvironmentChoice, HostingSection
from prime_core.hosting.pool import HostPool

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left")]

ENVIRONMENT = """
import tinydep
from prime_core.api import EnvironmentInfo, EnvironmentSpec, Message, Score, Task, hookimpl


class Environment:
    info = EnvironmentInfo("{name}", tinydep.VERSION, "0" * 64, "Apache-2.0")

    def tasks(self):
        return [Task("t", (Message("user", "?"),))]

    def render(self, task, budget):
        return task.prompt

    @property
    def verifier(self):
        return self

    def verify(self, task, completion):
        return Score(1.0, evidence={{"text": tinydep.{function}(completion.text, "x")}})


@hookimpl
def prime_environments():
    return [EnvironmentSpec("{name}", lambda params, context: Environment(), "Clashes.")]
"""
TINYDEP = "VERSION = {version!r}\n\n\ndef {function}(a, b):\n    return f'{version}:{{a}}{{b}}'\n"


def make(root: Path, name: str, version: str, function: str) -> EnvironmentChoice:
    tinydep = TINYDEP.format(version=version, function=function)
    environment = ENVIRONMENT.format(name=name, function=function)
    entry = f"[prime_core]\nenvironment.{name} = prime_env_{name}\n"
    python = make_interpreter(
        root / name,
        {
            "tinydep": (version, "tinydep", tinydep, ""),
            f"prime-env-{name}": ("0.1", f"prime_env_{name}", environment, entry),
        },
    )
    return EnvironmentChoice(use=name, python=python)


def test_two_versions_of_a_dependency_serve_side_by_side(tmp_path: Path) -> None:
    choices = [make(tmp_path, "old", "1.0", "join"), make(tmp_path, "new", "2.0", "combine")]
    texts: dict[str, list[object]] = {}

    async def check() -> None:
        pools = [
            await HostPool.open(
                choice,
                None,
                HostingSection(),
                cache_dir=tmp_path,
                run_dir=None,
                log_dir=tmp_path / "logs",
            )
            for choice in choices
        ]
        scores = await asyncio.gather(*(pool.score([(0, said("a"))] * 50) for pool in pools))
        for pool, found in zip(pools, scores, strict=True):
            about = pool.description
            assert found == [Score(1.0, evidence=found[0].evidence)] * 50
            texts[about.info.version] = [found[0].evidence["text"], about.distributions["tinydep"]]
            await pool.close()

    run(check())
    assert texts == {"1.0": ["1.0:ax", "1.0"], "2.0": ["2.0:ax", "2.0"]}
    for module in ("tinydep", "prime_env_old", "prime_env_new"):
        assert module not in sys.modules


@pytest.mark.parametrize("bare", [False, True])
def test_a_wrong_interpreter_is_named_with_the_way_out(tmp_path: Path, bare: bool) -> None:
    python = tmp_path / "absent" / "python"
    if bare:
        python = make_interpreter(tmp_path / "bare", {})
        next((tmp_path / "bare").rglob("ours.pth")).unlink()

    async def check() -> None:
        await HostPool.open(
            EnvironmentChoice(use="any", python=python),
            None,
            HostingSection(),
            cache_dir=tmp_path,
            run_dir=None,
        )

    with pytest.raises(HostError, match="prime-core env create") as caught:
        run(check())
    assert str(python) in str(caught.value)
