"""Jails: what runs in one reaches nothing outside, is counted, and ends with the check."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_support import running, wait_for

from prime_core.api import FormatError
from prime_core.check.launching import Launcher
from prime_core.check.measures import read_left

pytestmark = pytest.mark.integration


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
