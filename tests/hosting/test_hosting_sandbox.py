"""Sandboxes in hosts: one a host, its warmed jails no leftovers, and nothing left when it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from hosting_support import run, said, write_distribution

from prime_core.api import HostError
from prime_core.config.sections import EnvironmentChoice, HostingSection
from prime_core.hosting.keeper import descendants
from prime_core.hosting.pool import HostPool
from prime_core.testing.privileges import namespaces_refused

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(namespaces_refused() is not None, reason=str(namespaces_refused())),
]

PLUGIN = """
import os
from prime_core.api import (
    EnvironmentInfo, EnvironmentSpec, JailInput, Limits, Message, Params, Program, Score, Task,
    hookimpl,
)

class JailedParams(Params):
    level: str = "namespaces"

class Jailed:
    info = EnvironmentInfo("jailed", "0.1", "0" * 64, "CC0-1.0")

    def __init__(self, params, context):
        self._sandbox = context.sandbox(params.level)
        assert context.sandbox(params.level) is self._sandbox
        self.verifier = self

    def tasks(self):
        return [Task("one", (Message("user", "print 42"),))]

    def render(self, task, budget):
        return task.prompt

    def verify(self, task, completion):
        limits = Limits(cpu_seconds=1.0, wall_seconds=60.0)
        with self._sandbox.open(Program(completion.text), limits) as jail:
            found = jail.run(JailInput())
        evidence = {"host": os.getpid(), **self._sandbox.probe().evidence()}
        return Score(1.0 if found.stdout == b"42\\n" else 0.0, evidence=evidence)

@hookimpl
def prime_environments():
    return [EnvironmentSpec("jailed", Jailed, "programs", JailedParams)]
"""


async def open_pool(folder: Path, level: str = "namespaces", **hosting: object) -> HostPool:
    return await HostPool.open(
        EnvironmentChoice.model_validate({"use": "jailed", "with": {"level": level}}),
        None,
        HostingSection.model_validate({"time_limit_s": 60.0, **hosting}),
        cache_dir=folder / "cache",
        run_dir=None,
        log_dir=folder / "logs",
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    points = "[prime_core]\nenvironment.jailed = prime_env_jailed\n"
    write_distribution(tmp_path / "site", "prime-env-jailed", {"prime_env_jailed": PLUGIN}, points)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path


def groups_of(process: int) -> list[str]:
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if f"prime-core-{process}" in path]


def test_a_host_keeps_its_jails_between_items_and_leaves_nothing(folder):
    async def score() -> tuple[list, dict, tuple]:
        async with await open_pool(folder) as pool:
            daemon = "import os, time\nos.fork() or time.sleep(600)\nprint(42)"
            programs = ["print(42)", daemon, "1/0", "print(42)"]
            scores = [(await pool.score([(0, said(program))]))[0] for program in programs]
            return scores, pool.metrics(), pool.description.plugins

    scores, metrics, plugins = run(score())
    assert [each.value for each in scores] == [1.0, 1.0, 0.0, 1.0]
    hosts = {each.evidence["host"] for each in scores}
    assert len(hosts) == 1, "the host was replaced: its warmed jails were taken for leftovers"
    assert metrics["recycled"] == 0
    assert ("sandbox", "nsjail") in [(each.kind, each.name) for each in plugins]
    assert scores[0].evidence["sandbox"] == "nsjail"
    assert len(scores[0].evidence["policy"]) == 64
    assert groups_of(hosts.pop()) == []


def test_a_host_killed_while_a_program_runs_leaves_nothing_and_loses_no_score(folder):
    async def score() -> tuple:
        async with await open_pool(folder) as pool:
            (first,) = await pool.score([(0, said("print(42)"))])
            host = first.evidence["host"]
            sleeping = "import time\ntime.sleep(1)\nprint(42)"
            waiting = asyncio.ensure_future(pool.score([(0, said(sleeping))]))
            await asyncio.sleep(0.4)
            below = descendants(host)
            os.kill(host, signal.SIGKILL)
            (second,) = await waiting
            return host, below, second

    host, below, second = run(score())
    assert below
    assert second.value == 1.0
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in below):
        assert time.monotonic() < deadline, "a jail outlives its host"
        time.sleep(0.02)
    assert groups_of(host) == []


def test_a_weaker_sandbox_than_asked_for_is_an_error(folder):
    with pytest.raises(HostError, match="'namespaces' is asked for, and this host gives 'process'"):
        run(open_pool(folder, sandbox={"use": "landlock"}))


def test_a_sandbox_that_is_not_there_is_an_error(folder):
    with pytest.raises(HostError, match="nowhere"):
        run(open_pool(folder, sandbox={"use": "nowhere"}))
