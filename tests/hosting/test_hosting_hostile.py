"""What a pool answers for graders that crash, hang, lie and leave things behind."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest
from hosting_support import Opened, run, said

from prime_core.api import HostError, Score
from prime_core.hosting.keeper import descendants
from prime_core.hosting.pool import HostPool

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("no_process_left")]

TYPED = {
    "raise": "exception",
    "system-exit": "exception",
    "interrupt": "exception",
    "recursion": "exception",
    "unprintable": "exception",
    "memory": "memory",
    "nan": "value",
    "forged-nan": "value",
    "forged-infinity": "value",
    "nan-part": "value",
    "nan-evidence": "value",
    "object-evidence": "value",
    "huge-evidence": "value",
    "above": "value",
    "below": "value",
    "invalid-high": "value",
    "float": "value",
    "none": "value",
    "text": "value",
    "unknown-act": "exception",
}
CRASHES = {
    "exit 0": "code 0",
    "exit 3": "code 3",
    "segfault": "SIGSEGV",
    "kill": "SIGKILL",
    "close-all": "the host",
}


async def scores(pool: HostPool, texts: list[str]) -> list[Score]:
    return await pool.score([(0, said(text)) for text in texts])


def assert_error(score: Score, kind: str) -> None:
    assert (score.value, score.status) == (None, "error")
    assert score.evidence["kind"] == kind, score


def test_bad_answers_are_typed_errors_and_hurt_no_neighbour(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            texts = [text for bad in TYPED for text in ("right", bad, "wrong")]
            found = await scores(pool, texts)
            assert found[0::3] == [Score(1.0)] * len(TYPED)
            assert found[2::3] == [Score(0.0)] * len(TYPED)
            for score, kind in zip(found[1::3], TYPED.values(), strict=True):
                assert_error(score, kind)
            metrics = pool.metrics()
            assert metrics["retries"] == len(TYPED)
            assert metrics["errors_value"] == 2 * list(TYPED.values()).count("value")
            assert metrics["crashes"] == 0

    run(check())


def test_crashes_are_errors_and_hurt_no_neighbour(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            found = await scores(pool, [text for bad in CRASHES for text in (bad, "right")])
            assert found[1::2] == [Score(1.0)] * len(CRASHES)
            for score, said_of_it in zip(found[0::2], CRASHES.values(), strict=True):
                assert_error(score, "crash")
                assert said_of_it in score.evidence["detail"]
            assert pool.metrics()["crashes"] == 2 * len(CRASHES)

    run(check())


def test_a_hanging_item_is_killed_alone(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool(hosts=2, time_limit_s=1.5) as pool:
            found = await scores(pool, ["right", "block", "right", "spin", "right", "wrong"])
            for index in (1, 3):
                assert_error(found[index], "timeout")
            assert [found[n].value for n in (0, 2, 4, 5)] == [1.0, 1.0, 1.0, 0.0]
            assert pool.metrics()["timeouts"] == 4

    run(check())


def test_a_sleeping_event_loop_times_nothing_out(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool(time_limit_s=2.0) as pool:
            task = asyncio.create_task(scores(pool, ["sleep 0.3"] * 4))
            await asyncio.sleep(0.05)
            time.sleep(3.0)  # noqa: ASYNC251 - the point: our own process is slow, not the host
            assert await task == [Score(1.0)] * 4
            assert pool.metrics()["timeouts"] == 0

    run(check())


def test_an_item_that_fails_once_is_scored_at_the_second_try(
    open_pool: Opened, tmp_path: Path
) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            assert await scores(pool, [f"flaky {tmp_path / 'tried'}"]) == [Score(1.0)]
            assert pool.metrics()["retries"] == 1

    run(check())


def test_output_and_descriptors_are_no_way_to_the_messages(
    open_pool: Opened, tmp_path: Path
) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            texts = ["print"] * 10 + ["scribble", "close-standard", "print", "fork", "right"]
            found = await scores(pool, texts)
            assert_error(found[12], "exception")  # it prints to a closed stdout
            assert found[:12] + found[13:] == [Score(1.0)] * 14
            assert (await scores(pool, ["echo a\ud800\x00\u2028"]))[0].evidence["text"] == (
                "a\ud800\x00\u2028"
            )

    run(check())
    logs = list((tmp_path / "logs").iterdir())
    assert sum(log.stat().st_size for log in logs) <= 2 << 20


def test_what_a_call_leaves_behind_is_gone_at_the_next(open_pool: Opened) -> None:
    async def check() -> None:
        async with await open_pool() as pool:
            first = (await scores(pool, ["state"]))[0]
            for dirt in ("dirty", "thread", "child"):
                assert await scores(pool, [dirt, "state"]) == [Score(1.0), first]
            reasons = list(pool.recycle_reasons)
            assert pool.metrics()["recycled"] == 2
            assert any("thread" in reason for reason in reasons)
            assert any("child process" in reason for reason in reasons)

    run(check())


@pytest.mark.parametrize("act", ["daemon", "daemon-exit"])
def test_daemons_that_left_the_session_die_with_their_host(
    open_pool: Opened, tmp_path: Path, act: str
) -> None:
    async def check() -> int:
        async with await open_pool() as pool:
            path = tmp_path / "daemon"
            found = await scores(pool, [f"{act} {path}"])
            assert found[0].status == ("scored" if act == "daemon" else "error")
            return int(path.read_text())

    daemon = run(check())
    with pytest.raises(ProcessLookupError):
        os.kill(daemon, 0)


def test_secrets_of_the_parent_are_not_in_a_host(
    open_pool: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", "secret")
    monkeypatch.setenv("https_proxy", "http://user:secret@proxy.invalid")

    async def check() -> None:
        async with await open_pool() as pool:
            seen = (await scores(pool, ["variables"]))[0].evidence
            assert not any("secret" in str(value) for value in seen.values())
            fixed = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
            assert fixed.items() <= seen.items()

    run(check())


def test_a_secret_that_a_parameter_names_reaches_the_plugin_and_nothing_else(
    open_pool: Opened, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTILE_TOKEN", "hush-hush")

    async def check() -> None:
        async with await open_pool(params={"token": "env:HOSTILE_TOKEN"}) as pool:
            found = (await scores(pool, ["token", "exit 1", "token"]))[0]
            assert found.evidence == {"length": 9, "left": False}
            assert "hush" not in repr(pool.description)
            assert "hush" not in repr(pool._settings)

    run(check())
    assert all(b"hush" not in log.read_bytes() for log in (tmp_path / "logs").iterdir())


def test_an_environment_that_never_starts_says_why(open_pool: Opened) -> None:
    for use, params, kind, words in (
        ("broken_import", {}, "exception", ["surely_absent_module", "imported"]),
        ("hostile", {"start": "raise"}, "exception", ["boom"]),
        ("hostile", {"start": "system-exit"}, "exception", []),
        ("hostile", {"start": "same"}, "value", ["same id"]),
        ("hostile", {"colour": "red"}, "exception", ["colour"]),
        ("absent", {}, "exception", ["absent"]),
    ):
        with pytest.raises(HostError) as caught:
            run(open_pool(use=use, params=params))
        assert caught.value.kind == kind, caught.value
        assert caught.value.fix
        for word in words:
            assert word in str(caught.value)


def test_a_start_that_hangs_or_crashes_is_tried_again_and_then_given_up(
    open_pool: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    for start, kind, tries, limit in (
        ("sleep 60", "timeout", 1, 4.0),
        ("exit 3", "crash", 2, 60.0),
        ("memory", "memory", 2, 60.0),
    ):
        monkeypatch.setattr("prime_core.hosting.slot.BACK_OFF_S", (0.0,) * tries)
        with pytest.raises(HostError) as caught:
            run(open_pool(params={"start": start}, start_limit_s=limit))
        assert caught.value.kind == kind
        phase = "configured" if kind == "memory" else "making environment hostile"
        assert phase in str(caught.value)


def test_an_environment_that_stops_starting_ends_the_calls(
    open_pool: Opened, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.hosting.slot.BACK_OFF_S", (0.0, 0.01))

    async def check() -> None:
        async with await open_pool() as pool:
            monkeypatch.setenv("PYTHONPATH", str(site / "gone"))
            with pytest.raises(HostError):
                await scores(pool, ["exit 1", "right"])

    run(check())


def test_no_host_outlives_the_process_that_opened_it(on_path: Path, tmp_path: Path) -> None:
    program = (
        "import asyncio, os, signal, sys\n"
        "from pathlib import Path\n"
        "from prime_core.api import Completion\n"
        "from prime_core.config.sections import EnvironmentChoice, HostingSection\n"
        "from prime_core.hosting.pool import HostPool\n"
        "async def main():\n"
        "    pool = await HostPool.open(EnvironmentChoice(use='hostile'), None,\n"
        "        HostingSection(), cache_dir=Path('cache'), run_dir=None, log_dir=Path('logs'))\n"
        "    await pool.score([(0, Completion('daemon ' + os.path.abspath('daemon')))])\n"
        "    from prime_core.hosting.keeper import descendants\n"
        "    print(*descendants(os.getpid()), Path('daemon').read_text(), flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "asyncio.run(main())\n"
    )
    import subprocess
    import sys

    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert ended.returncode == -9, ended.stderr
    processes = [int(text) for text in ended.stdout.split()]
    assert len(processes) >= 3
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{process}").exists() for process in processes):
        assert time.monotonic() < deadline, "hosts outlive their parent"
        time.sleep(0.02)
    assert not set(descendants(1)) & set(processes)
