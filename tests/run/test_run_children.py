"""Children: restart, give up, stop; role locks; dying with the supervisor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from prime_core.api.errors import RunError
from prime_core.run.children import Child, Children, describe_exit
from prime_core.run.lifeline import RoleLock


class PythonChild(Child):
    """A child that runs a line of Python instead of a role."""

    def start(self) -> None:
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.arguments[0]],
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.started = time.monotonic()


def watch_until(children: Children, done: object, *, seconds: float = 20.0) -> list[str]:
    events: list[str] = []
    deadline = time.monotonic() + seconds
    while not done() and time.monotonic() < deadline:  # type: ignore[operator]
        events += children.watch()
        time.sleep(0.02)
    assert done()  # type: ignore[operator]
    return events


def test_a_killed_child_is_started_again(tmp_path: Path) -> None:
    children = Children()
    child = PythonChild("worker-0", ["import time; time.sleep(60)"], tmp_path / "worker-0.log")
    children.add(child)
    assert child.process is not None
    first = child.process.pid
    os.kill(first, signal.SIGKILL)
    events = watch_until(
        children, lambda: child.process is not None and child.process.pid != first and child.running
    )
    assert events == ["worker-0 was killed by SIGKILL; restarting in 0.2 s"]
    assert children.restarts() == 1
    children.stop()
    assert children.running() == []


def test_a_child_that_ends_well_stays_ended(tmp_path: Path) -> None:
    children = Children()
    child = PythonChild("intake", ["pass"], tmp_path / "intake.log")
    children.add(child)
    watch_until(children, lambda: child.exits == [0])
    assert children.watch() == []
    assert children.running() == []


def test_a_child_that_dies_again_and_again_ends_the_run_with_its_log(tmp_path: Path) -> None:
    children = Children(max_restarts=1)
    code = "import sys; print('no space left for weights'); sys.exit(7)"
    children.add(PythonChild("trainer", [code], tmp_path / "trainer.log"))
    with pytest.raises(RunError) as caught:
        watch_until(children, lambda: False)
    assert "trainer ended with exit code 7 (2 times)" in str(caught.value)
    assert "no space left for weights" in str(caught.value)


def test_a_users_error_is_not_tried_again(tmp_path: Path) -> None:
    children = Children()
    code = "import sys; print('error: no such model'); sys.exit(2)"
    children.add(PythonChild("worker-0", [code], tmp_path / "worker-0.log"))
    with pytest.raises(RunError, match="no such model"):
        watch_until(children, lambda: False)


def test_stop_ends_a_child_that_ignores_sigterm_and_its_grandchildren(tmp_path: Path) -> None:
    code = (
        "import signal, subprocess, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']);"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    children = Children()
    child = PythonChild("worker-0", [code], tmp_path / "worker-0.log")
    children.add(child)
    deadline = time.monotonic() + 20
    while not child.tail() and time.monotonic() < deadline:
        time.sleep(0.02)
    grandchild = psutil.Process(int(child.tail()))
    children.stop(grace_s=0.3)
    grandchild.wait(5)
    assert not grandchild.is_running()


def test_exit_codes_in_words() -> None:
    assert describe_exit(3) == "ended with exit code 3"
    assert describe_exit(-11) == "was killed by SIGSEGV"


def test_a_role_is_played_by_one_process_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from prime_core.run.lifeline import RoleLock\n"
        f"with RoleLock(Path({str(tmp_path)!r}), 'trainer'):\n"
        "    print('held', flush=True); time.sleep(60)"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"held\n"
    with (
        pytest.raises(RunError, match=f"pid {holder.pid}"),
        RoleLock(tmp_path, "trainer", patience_s=0.1),
    ):
        pass
    holder.kill()
    holder.wait()
    holder.stdout.close()
    with RoleLock(tmp_path, "trainer", patience_s=0.1):
        assert (tmp_path / "locks" / "trainer.lock").read_text().strip() == str(os.getpid())


def test_a_role_dies_with_its_supervisor(tmp_path: Path) -> None:
    role = (
        "import os, sys, time; from prime_core.run.lifeline import die_with_parent;"
        "die_with_parent(os.getppid()); print(os.getpid(), flush=True); time.sleep(60)"
    )
    supervisor = (
        "import subprocess, sys, time;"
        f"subprocess.Popen([sys.executable, '-c', {role!r}]); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", supervisor], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    orphan = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    orphan.wait(5)
    assert not orphan.is_running()
