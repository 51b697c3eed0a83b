"""The environment in a host, as a run has it: verdicts, a killed grader, nothing left."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import psutil
import pytest

from prime_core.api import Completion, Message, Sandbox, Score
from prime_core.config.sections import EnvironmentChoice, HostingSection
from prime_core.hosting.pool import HostPool

pytestmark = pytest.mark.integration

CHOICE = EnvironmentChoice.model_validate(
    {"use": "code", "with": {"problems": {"limit": 12, "seed": 2}}}
)


def completion(text: str) -> Completion:
    return Completion(text, (Message("assistant", text),), "stop", 5)


def hosts() -> list[psutil.Process]:
    """The serving halves of this process's hosts."""
    keepers = [
        child
        for child in psutil.Process().children()
        if child.status() != psutil.STATUS_ZOMBIE
        if any("prime_core.hosting.host" in part for part in child.cmdline())
    ]
    return [host for keeper in keepers for host in keeper.children()]


async def score_with_a_kill(folder: Path) -> tuple[list[Score], list[float]]:
    hosting = HostingSection(hosts=1, time_limit_s=60.0, memory_mb=4096)
    async with await HostPool.open(
        CHOICE, None, hosting, cache_dir=folder / "cache", run_dir=None
    ) as pool:
        work, expected = [], []
        for index in range(12):
            work.append((index, completion(await pool.gold(index))))
            work.append((index, completion(await pool.wrong(index, seed=index))))
            expected += [1.0, 0.0]
        running = asyncio.create_task(pool.score(work))
        await asyncio.sleep(0.5)
        for host in hosts():
            host.send_signal(signal.SIGKILL)
        return await running, expected


def test_a_killed_grader_loses_no_rollout_and_leaves_nothing(
    jails: Sandbox, tmp_path: Path
) -> None:
    tmp_path.chmod(0o755)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    scores, expected = asyncio.run(score_with_a_kill(tmp_path))
    assert len(scores) == len(expected)
    # The one that was being judged is judged again, or has no value; none has a wrong one.
    lost = [score for score in scores if score.status == "error"]
    assert len(lost) <= 1
    for score, wanted in zip(scores, expected, strict=True):
        assert score.value in (wanted, None)
        if score.value is not None:
            assert score.evidence["isolation"]["sandbox"] == "nsjail"
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    # The session's own sandbox may have filled its pool meanwhile.
    ours = jails.processes()
    assert [child for child in left if not _below(child, ours)] == []


def _below(child: psutil.Process, roots: frozenset[int]) -> bool:
    return child.pid in roots or any(parent.pid in roots for parent in child.parents())
