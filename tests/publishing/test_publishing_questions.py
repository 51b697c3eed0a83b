"""`prime-core new` asks a person at a terminal, and only there."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration


def at_a_terminal(folder: Path, typed: str, *arguments: str) -> str:
    """What a terminal shows while somebody types these lines."""
    ours, theirs = pty.openpty()
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "prime_core", "new", *arguments],
            cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs,
        ) as process:  # fmt: skip
            os.close(theirs)
            os.write(ours, typed.encode())
            shown = b""
            while True:
                try:
                    piece = os.read(ours, 4096)
                except OSError:  # the other end was closed
                    break
                if not piece:
                    break
                shown += piece
            assert process.wait() == 0, shown.decode()
    finally:
        os.close(ours)
    return shown.decode()


def test_a_person_is_asked_for_what_was_not_given(tmp_path: Path) -> None:
    typed = "Dice Throws\nWhat do the dice show?\nAda Lovelace\nGPL\nMIT\n"
    shown = at_a_terminal(tmp_path, typed, "environment")
    for question in ("Name", "Summary", "Author", "Licence"):
        assert question in shown
    assert "'GPL' is not one of" in shown, "a licence that isn't offered is asked for again"
    project = tomllib.loads((tmp_path / "prime-env-dice-throws/pyproject.toml").read_text())
    assert project["project"]["description"] == "What do the dice show?"
    assert project["project"]["license"] == "MIT"
    assert project["project"]["authors"] == [{"name": "Ada Lovelace"}]


def test_flags_leave_nothing_to_ask(tmp_path: Path) -> None:
    shown = at_a_terminal(tmp_path, "", "plugin", "short", "--kind", "reward", "--yes")
    assert "?" not in shown
    assert "Summary" not in shown
    assert (tmp_path / "prime-reward-short").is_dir()


def test_a_script_without_a_terminal_is_never_asked(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "prime_core", "new", "plugin", "short"],
        cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--kind" in done.stderr


def test_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    for name, said in (("arithmetic", True), ("arithmetics", False)):
        done = subprocess.run(
            [sys.executable, "-m", "prime_core", "new", "environment", name, "--yes"],
            cwd=tmp_path, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert ("prime-env-arithmetic 0.1.0 provides a plugin" in done.stderr) is said, done.stderr
