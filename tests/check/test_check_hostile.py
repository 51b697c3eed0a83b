"""Hostile packages: whatever one does, the check ends, says so, and this machine is unharmed.

Each package does one thing at its import, in its factory, with its tasks or while it judges.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from check_fixtures import environment, importing, verifying, write
from check_words import GOOD, Files

from prime_core.api import FormatError
from prime_core.check.checking import Order, check
from prime_core.check.launching import Launcher
from prime_core.check.limits import Limits
from prime_core.check.measures import read_left
from prime_core.check.outcome import Report

pytestmark = pytest.mark.integration

LIMITS = Limits(tasks=10, sample=10, item_s=1.5, start_s=8.0)
RULES = ("I01", "I11", "T01", "T02", "H01", "R01")


def checked(files: Files, tmp_path: Path, *rules: str, limits: Limits = LIMITS) -> Report:
    """A check of a hostile distribution."""
    folder = write(files, tmp_path / "hostile")
    return check(Order(str(folder), "silver", rules or RULES, limits=limits))


def statuses(report: Report) -> dict[str, str]:
    """Rule to status."""
    return {outcome.rule.id: outcome.status for outcome in report.outcomes}


def seen(report: Report) -> str:
    """All that findings and reasons say."""
    said = [finding.seen for outcome in report.outcomes for finding in outcome.findings]
    return "\n".join(said + [outcome.reason for outcome in report.outcomes])


def jailed(report: Report) -> bool:
    """The strongest isolation held, so that nothing may have come through."""
    return report.isolation.startswith("namespaces")


@pytest.mark.slow
def test_a_loop_at_import_is_ended(tmp_path: Path) -> None:
    report = checked(importing("while True: pass")(), tmp_path, limits=Limits(start_s=3.0))
    assert statuses(report)["I01"] == "failed"
    assert "while importing prime_env_words: it didn't end in time" in seen(report)
    assert statuses(report)["T01"] == "undecided"


def crowd(tmp_path: Path, program: str) -> str:
    """What is said of a program in a jail that allows 64 processes."""
    launcher = Launcher(tmp_path, Path(sys.executable), processes=64)
    if launcher.isolation != "namespaces":
        pytest.skip("this machine has no process namespaces")
    command = [str(launcher.interpreter()), "-I", "-S", "-c", program]
    return launcher._run(command, 120.0, dict(os.environ)).output


def test_a_crowd_of_processes_is_ended_by_its_number(tmp_path: Path) -> None:
    program = (
        "import os, time\n"
        "for _ in range(80):\n"
        "    if os.fork() == 0: time.sleep(600)\n"
        "time.sleep(600)\n"
    )
    assert "killed: it runs more than 64 processes" in crowd(tmp_path, program)


@pytest.mark.slow
def test_a_fork_bomb_is_ended_by_its_number(tmp_path: Path) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    assert "killed: it runs more than 64 processes" in crowd(tmp_path, bomb)


@pytest.mark.slow
def test_endless_output_fills_neither_memory_nor_the_report(tmp_path: Path) -> None:
    files = importing("import sys", "while True: sys.stderr.write('x' * 65536)")()
    report = checked(files, tmp_path, "I01", limits=Limits(start_s=20.0))
    assert statuses(report) == {"I01": "failed"}
    assert len(seen(report)) < 10_000


def test_files_of_this_machine_are_out_of_reach(tmp_path: Path) -> None:
    kept, home = tmp_path / "kept", Path.home() / "hostile-was-here"
    kept.write_text("kept")
    files = importing(
        "import os, shutil",
        f"for act in (lambda: os.unlink({str(kept)!r}), lambda: open({str(kept)!r}, 'w'),",
        f"            lambda: open({str(home)!r}, 'w'), lambda: os.kill(1, 9),",
        f"            lambda: shutil.rmtree({str(kept.parent)!r})):",
        "    try: act()",
        "    except OSError: pass",
    )()
    report = checked(files, tmp_path, "I01", "I05", "T01")
    if jailed(report):
        assert kept.read_text() == "kept"
        assert not home.exists()
        assert statuses(report)["I05"] == "failed"


def test_the_network_is_out_of_reach(tmp_path: Path) -> None:
    files = environment(
        "        # made\n",
        "        import socket\n        socket.create_connection(('192.0.2.1', 80), 30)\n",
    )()
    report = checked(files, tmp_path, "I11", "T01")
    assert statuses(report) == {"I11": "failed", "T01": "undecided"}
    assert "Network is unreachable" in seen(report) or not jailed(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["os._exit(0)", "import ctypes; ctypes.string_at(0)", "raise SystemExit(0)"]
)
def test_a_factory_that_ends_its_process_is_a_failure(call: str, tmp_path: Path) -> None:
    report = checked(environment("        # made\n", f"        {call}\n")(), tmp_path)
    said = statuses(report)
    assert said["I11"] == "failed"
    assert {said[rule] for rule in ("T01", "T02", "H01", "R01")} == {"undecided"}
    assert report.exit_code == 1


def test_a_result_that_the_package_wrote_itself_is_read_strictly(tmp_path: Path) -> None:
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        '    open(sys.argv[2], \'w\').write(\'{"at": 7, "modules": [1], "plugins": null}\')',
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "I02", "I10", "T01")
    assert statuses(report)["I01"] == "failed"
    assert "passed" not in statuses(report).values()
    assert "the rule itself failed" not in seen(report)


@pytest.mark.parametrize("left", ["", '{"at": "", "modules": {}, "plugins": {}}'])
def test_an_import_that_ends_the_process_fails_even_if_it_ends_it_well(
    left: str, tmp_path: Path
) -> None:
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        f"    {left!r} and open(sys.argv[2], 'w').write({left!r})",
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "I02")
    assert statuses(report) == {"I01": "failed", "I02": "undecided"}


def test_what_is_run_and_written_outside_of_jails_is_out_of_reach(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path, Path(sys.executable))
    if launcher.isolation != "namespaces":
        pytest.skip("this machine has no mount namespaces")
    script = launcher.interpreter()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    program = (
        "import os, sys\n"
        "acts = [lambda path=path: open(path, 'w').write('#!/bin/sh') for path in sys.argv[1:]]\n"
        f"scratch = {str(tmp_path)!r}\n"
        "acts += [lambda name=name: os.rename(f'{scratch}/{name}', f'{scratch}/inside/{name}')\n"
        "         for name in ('launch', 'logs', 'dev', 'inside/../inside')]\n"
        "acts += [lambda: os.symlink('/etc', f'{scratch}/site')]\n"
        "for act in acts:\n"
        "    try: act()\n"
        "    except OSError: pass\n"
        "    else: raise SystemExit(9)\n"
    )
    command = [str(script), "-I", "-S", "-c", program, *map(str, before)]
    ended = launcher._run(command, 120.0, dict(os.environ))
    assert (ended.code, ended.output) == (0, "")
    assert {path: path.read_bytes() for path in before} == before


def test_a_pipe_or_a_link_that_is_left_is_not_read(tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(__file__)
    for path in (pipe, link, tmp_path):
        with pytest.raises((FormatError, OSError)):
            read_left(path)


@pytest.mark.slow
def test_a_result_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"at": "the secret", "modules": {}, "plugins": {}}')
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        "    os.path.exists(sys.argv[2]) and os.unlink(sys.argv[2])",
        f"    os.symlink({str(secret)!r}, sys.argv[2])",
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "T01")
    assert statuses(report) == {"I01": "failed", "T01": "undecided"}
    assert "the secret" not in seen(report)


def test_a_changed_checker_changes_its_own_process_alone(tmp_path: Path) -> None:
    files = importing(
        "import prime_core.check.bounds, prime_core.check.paying, prime_core.hosting.wire",
        "prime_core.check.bounds.exceeds = lambda *a, **k: False",
        "prime_core.check.paying.overpaid = lambda *a, **k: None",
        "prime_core.check.paying.top_paid = lambda *a, **k: True",
    )()
    path = "prime_env_words/environment.py"
    files[path] = files[path].replace("# verify", "return Score(1.0)")
    report = checked(files, tmp_path, "T01", "T02", "H01")
    assert statuses(report) == {"T01": "passed", "T02": "failed", "H01": "failed"}


def test_a_list_of_ten_to_the_twelve_tasks_is_sampled(tmp_path: Path) -> None:
    files = environment(
        "        # tasks\n",
        "        whole = self._tasks\n"
        "        class Giant(list):\n"
        "            def __len__(self): return 10**12\n"
        "            def __getitem__(self, n): return whole[n % 40]\n"
        "        self._tasks = Giant()\n",
    )()
    report = checked(files, tmp_path, "I11", "D02")
    assert statuses(report) == {"I11": "passed", "D02": "failed"}


@pytest.mark.slow
def test_endless_tasks_end_at_the_time_limit(tmp_path: Path) -> None:
    files = environment(
        '        """All of them."""\n        return self._tasks',
        '        """All of them."""\n        import itertools\n'
        "        return list(itertools.cycle(self._tasks))",
    )()
    report = checked(files, tmp_path, limits=Limits(start_s=6.0))
    said = statuses(report)
    assert said["I11"] == "failed"
    assert said["T01"] == "undecided"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("os._exit(0)", "crash"),
        ("os.closerange(0, 64); os._exit(0)", "crash"),
        ("while True: pass", "timeout"),
        ("raise SystemExit(0)", "exception"),
        ("return Score(float('nan'))", "value"),
        ("return 'all is well'", "value"),
    ],
)
def test_a_verifier_that_fights_is_an_error_and_never_paid(
    line: str, kind: str, tmp_path: Path
) -> None:
    files = verifying("if answer == 'banana' and task.id == 'word-0':", f"    {line}")()
    report = checked(files, tmp_path, "H01", "R01", "R02", "R04")
    said = statuses(report)
    assert said["H01"] == "passed"
    rule = {"timeout": "R02", "value": "R04"}.get(kind, "R01")
    assert {each for each, status in said.items() if status == "failed"} == {rule}


@pytest.mark.slow
def test_a_verifier_that_always_ends_its_process_is_given_up(tmp_path: Path) -> None:
    report = checked(verifying("os._exit(0)")(), tmp_path, "T01", "H01", "R01")
    assert statuses(report) == {"T01": "failed", "H01": "undecided", "R01": "failed"}
    assert "so many completions end its process that it was given up: crash" in seen(report)


@pytest.mark.slow
def test_answers_written_into_the_result_pipe_are_no_scores(tmp_path: Path) -> None:
    files = verifying(
        "import json",
        "score = {'value': 1.0, 'status': 'scored'}",
        "said = json.dumps({'id': 1, 'item': 0, 'ok': score}).encode()",
        "for number in map(int, os.listdir('/proc/self/fd')):",
        "    try: os.write(number, len(said).to_bytes(4, 'big') + said)",
        "    except OSError: pass",
    )()
    report = checked(files, tmp_path, "T01", "T02")
    assert "passed" not in statuses(report).values()
    assert report.exit_code == 3


@pytest.mark.slow
def test_a_build_that_never_ends_is_no_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.check.staging.BUILD_LIMIT_S", 3.0)
    files = dict(GOOD)
    files["pyproject.toml"] = files["pyproject.toml"].replace(
        'build-backend = "hatchling.build"', 'build-backend = "backend"\nbackend-path = ["."]'
    )
    files["backend.py"] = "while True: pass\n"
    report = checked(files, tmp_path, "P06", "I01")
    assert statuses(report) == {"P06": "failed", "I01": "undecided"}


@pytest.mark.slow
def test_nothing_is_left_running_or_lying_about(tmp_path: Path) -> None:
    files = importing(
        "import subprocess",
        "subprocess.Popen(['sleep', '86399'], start_new_session=True)",
    )()
    report = checked(files, tmp_path, "I06", "T01")
    assert statuses(report)["I06"] == "failed"
    assert "sleep 86399" not in running() or not jailed(report)


def test_a_check_that_is_killed_takes_its_children_along(tmp_path: Path) -> None:
    launcher = Launcher(tmp_path, Path(sys.executable))
    if launcher.isolation != "namespaces":
        pytest.skip("this machine has no process namespaces")
    mark = f"hangs-{os.getpid()}"
    outside = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); sys.stdin.read(1)"
    inside = ["-I", "-S", "-c", f"import time; time.sleep(600)  # {mark}"]
    process = subprocess.Popen(
        [sys.executable, "-c", outside, str(launcher.interpreter()), *inside],
        stdin=subprocess.PIPE,
    )
    wait_for(lambda: mark in running())
    process.kill()
    process.communicate()
    wait_for(lambda: mark not in running())


def running() -> str:
    """The command lines of this machine's processes, however wide."""
    command = ["ps", "-ww", "-eo", "args"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_for(holds: Callable[[], bool]) -> None:
    """Until it does, a minute at most."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never did")


def test_the_same_check_of_an_honest_package_passes(tmp_path: Path) -> None:
    report = checked(GOOD, tmp_path, *RULES)
    assert set(statuses(report).values()) == {"passed"}
