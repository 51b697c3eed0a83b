"""`prime-core score` through a real host."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prime_core.api import HostError, RunError
from prime_core.cli.score import score

pytestmark = pytest.mark.integration


def call(*arguments: str, text: str = "") -> tuple[int, str]:
    found = CliRunner().invoke(score, ["arithmetic", *arguments], input=text)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.output


def test_the_score_of_a_completion_is_printed(tmp_path: Path) -> None:
    code, output = call("--index", "0", "--completion", "-", "--json", text="nonsense")
    found = json.loads(output)
    assert code == 0
    assert found["value"] == 0.0
    file = tmp_path / "completion.txt"
    file.write_text("nonsense")
    code, output = call("--task", found["task"], "--completion", str(file))
    assert code == 0
    assert output.startswith(f"{found['task']}: 0 (")


def test_parameters_reach_the_environment() -> None:
    code, output = call("--with", "digits=1", "--index", "0", "--completion", "-", "--json")
    assert code == 0
    assert len(json.loads(output)["task"]) < len("addition:10+10")
    with pytest.raises(HostError, match="digitz"):
        call("--with", "digitz=1", "--index", "0", "--completion", "-")


@pytest.mark.parametrize("which", [["--task", "absent"], ["--index", "99999999"]])
def test_an_absent_task_is_an_error(which: list[str]) -> None:
    with pytest.raises(RunError, match="no task"):
        call(*which, "--completion", "-")


@pytest.mark.parametrize("which", [[], ["--task", "a", "--index", "0"]])
def test_exactly_one_task_has_to_be_named(which: list[str]) -> None:
    code, output = call(*which, "--completion", "-")
    assert code == 2
    assert "either --task ID or --index N" in output
