"""`prime-core env`: what it asks of venv and pip, what it records, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prime_core.api import FormatError, RunError
from prime_core.cli.env import env
from prime_core.hosting import virtualenvs


def call(*arguments: str) -> str:
    found = CliRunner().invoke(env, arguments)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    assert found.exit_code == 0, found.output
    return found.output


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Records the commands, and answers as venv, pip and prime-core would."""
    seen: list[list[str]] = []

    def answer(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        seen.append(list(command))
        output = ""
        if "venv" in command:
            path = Path(command[-1])
            path.mkdir(parents=True)
            (path / "pyvenv.cfg").write_text("")
        elif "plugins" in command:
            output = '{"plugins": [{"kind": "environment", "name": "odd"}]}'
        elif "freeze" in command:
            output = "a==1\nb==2\n"
        elif "-c" in command[:2]:
            output = "3.11.7\n"
        failed = "bad-requirement" in command
        return subprocess.CompletedProcess(
            command, int(failed), output, "ERROR: no matching distribution" if failed else ""
        )

    monkeypatch.setattr(subprocess, "run", answer)
    return seen


def test_create_installs_records_and_prints_the_line(
    commands: list[list[str]], tmp_path: Path
) -> None:
    limits = tmp_path / "limits.txt"
    limits.write_text("")
    root = ["--dir", str(tmp_path / "envs")]
    output = call("create", "odd", "-r", "prime-env-odd", "-r", "./x", "-c", str(limits), *root)
    python = tmp_path / "envs" / "odd" / "bin" / "python"
    assert f'python = "{python}"' in output.splitlines()
    assert commands[0][:3] == [sys.executable, "-m", "venv"]
    install = next(command for command in commands if "install" in command)
    assert install[-3:] == [virtualenvs.own_source(), "prime-env-odd", "./x"]
    assert install[0] == str(python)
    assert install[install.index("install") + 1 :][:2] == ["-c", str(limits)]
    found = json.loads(call("list", "--json", *root))["envs"]
    assert found[0]["packages"] == ["a==1", "b==2"]
    assert found[0]["plugins"] == ["environment.odd"]
    assert str(python) in call("list", *root)
    assert json.loads(call("remove", "odd", "--json", *root))["removed"] == str(python.parents[1])
    assert "no virtual environments" in call("list", *root)


def test_a_failed_create_leaves_nothing_and_shows_what_pip_said(
    commands: list[list[str]], tmp_path: Path
) -> None:
    root = ["--dir", str(tmp_path)]
    with pytest.raises(RunError, match="no matching distribution"):
        call("create", "odd", "-r", "bad-requirement", *root)
    assert list(tmp_path.iterdir()) == []


def test_bad_and_taken_names_are_refused(commands: list[list[str]], tmp_path: Path) -> None:
    root = ["--dir", str(tmp_path)]
    call("create", "odd", *root)
    with pytest.raises(RunError, match="already"):
        call("create", "odd", *root)
    for name in ("../odd", ".hidden", "a/b", "x" * 65):
        with pytest.raises(RunError):
            call("create", name, *root)
        with pytest.raises(RunError):
            call("remove", name, *root)
    (tmp_path / "mine").mkdir()
    with pytest.raises(RunError, match="name one of: odd"):
        call("remove", "mine", *root)


def test_a_broken_record_says_how_to_mend_it(commands: list[list[str]], tmp_path: Path) -> None:
    call("create", "odd", "--dir", str(tmp_path))
    (tmp_path / "odd" / virtualenvs.RECORD).write_text("{}")
    with pytest.raises(FormatError, match="env remove odd"):
        call("list", "--dir", str(tmp_path))


@pytest.mark.slow
@pytest.mark.integration
def test_a_real_environment_is_made_and_serves(tmp_path: Path) -> None:
    from prime_core.cli.score import score

    root = Path(__file__).parents[2]
    made = json.loads(
        call(
            *("create", "real", "-r", str(root / "environments" / "arithmetic")),
            *("-c", str(root / "constraints.txt"), "--dir", str(tmp_path), "--json"),
        )
    )
    assert "environment.arithmetic" in made["plugins"]
    arguments = ["arithmetic", "--index", "0", "--completion", "-", "--python", made["python"]]
    found = CliRunner().invoke(score, arguments, input="nonsense")
    assert found.exit_code == 0, found.output
