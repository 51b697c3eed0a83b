"""Which distributions a change concerns, in real git repositories."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prime_core.api import RunError
from prime_core.check.changes import changed_files, distributions_of
from prime_core.cli.check import check

pytestmark = pytest.mark.integration

PLUGIN = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "0.1.0"
[project.entry-points.prime_core]
"environment.{name}" = "{name}"
"""


def git(root: Path, *arguments: str) -> str:
    author = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    command = ["git", "-C", str(root), *author, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Two plugin distributions, one of another kind, and an engine around them, in one commit."""
    git(tmp_path, "init", "-q", "-b", "main")
    write(tmp_path / "pyproject.toml", PLUGIN.format(name="prime-core"))
    for name in ("apples", "pears"):
        write(tmp_path / f"environments/{name}/pyproject.toml", PLUGIN.format(name=name))
        write(tmp_path / f"environments/{name}/{name}/__init__.py", "")
    write(tmp_path / "tools/pyproject.toml", '[project]\nname = "tools"\n')
    write(tmp_path / "tools/tool.py", "")
    write(tmp_path / ".gitignore", "build/\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "Begin")
    return tmp_path


def changed(root: Path, since: str = "HEAD") -> list[str]:
    return [each.name for each in distributions_of(changed_files(root, since))]


def test_nothing_changed_is_nothing_to_check(root: Path) -> None:
    assert changed(root) == []


@pytest.mark.parametrize(
    ("file", "found"),
    [
        ("environments/apples/apples/__init__.py", ["apples"]),
        ("environments/apples/new folder/\u00e9 file\n.txt", ["apples"]),
        ("environments/pears/pyproject.toml", ["pears"]),
        ("environments/README.md", []),
        ("environments/apples/build/left.txt", []),
        ("tools/tool.py", []),
        ("pyproject.toml", []),
    ],
)
def test_a_file_concerns_the_distribution_that_holds_it(
    root: Path, file: str, found: list[str]
) -> None:
    old = (root / file).read_text() if (root / file).is_file() else ""
    write(root / file, f"{old}# changed\n")
    assert changed(root) == found
    git(root, "add", "-A")
    assert changed(root) == found, "staged"
    if git(root, "status", "--short"):
        git(root, "commit", "-qm", "Change")
    assert changed(root) == []
    assert changed(root, "main@{1}" if found or "build" not in file else "HEAD") == found


def test_a_moved_file_concerns_both_and_a_deleted_distribution_is_gone(root: Path) -> None:
    git(root, "mv", "environments/apples/apples/__init__.py", "environments/pears/more.py")
    assert changed(root) == ["apples", "pears"]
    shutil.rmtree(root / "environments/apples")
    assert changed(root) == ["pears"]


def test_what_happened_on_the_main_branch_meanwhile_is_not_ours(root: Path) -> None:
    git(root, "checkout", "-qb", "feature")
    write(root / "environments/apples/x.py", "")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Ours")
    git(root, "checkout", "-q", "main")
    write(root / "environments/pears/y.py", "")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "Theirs")
    git(root, "checkout", "-q", "feature")
    assert changed(root, "main") == ["apples"]
    assert changed(root / "environments/pears", "main") == []


def test_a_broken_pyproject_is_checked_where_it_claims_something(root: Path) -> None:
    write(root / "environments/apples/pyproject.toml", "[project")
    assert changed(root) == []
    write(root / "environments/apples/checks.toml", 'level = "bronze"\n')
    assert changed(root) == ["apples"]


@pytest.mark.parametrize("since", ["nowhere", "--output=x", "HEAD:pyproject.toml"])
def test_a_commit_that_is_not_there_is_an_error(root: Path, since: str) -> None:
    with pytest.raises(RunError, match="fetch-depth"):
        changed_files(root, since)
    assert not (root / "x").exists()


def test_outside_of_a_repository_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="git rev-parse failed"):
        changed_files(tmp_path, "HEAD")


def test_a_vendored_repository_inside_is_not_ours(root: Path) -> None:
    write(root / "environments/apples/vendor/.git", "gitdir: elsewhere\n")
    assert distributions_of([root / "environments/apples/vendor/file.py"]) == []


def run(root: Path, *arguments: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, str]:
    monkeypatch.chdir(root)
    found = CliRunner().invoke(check, [*arguments, "--rule", "P02", "--no-cache"])
    assert isinstance(found.exception, SystemExit | None), found.output
    return found.exit_code, found.output


def test_the_command_checks_what_changed_and_places_what_it_finds(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, said = run(root, "--changed-since", "HEAD", monkeypatch=monkeypatch)
    assert (code, said) == (0, "no distribution to check\n")
    for name in ("apples", "pears"):
        write(root / f"environments/{name}/README.md", "hello")
    code, said = run(root, "--changed-since", "HEAD", "--format", "github", monkeypatch=monkeypatch)
    assert code == 1
    for name in ("apples", "pears"):
        assert f"::error file=environments/{name}/pyproject.toml,line=1,title=P02" in said
    shown: Any = json.loads(
        run(root, "--changed-since", "HEAD", "--format", "sarif", monkeypatch=monkeypatch)[1]
    )
    assert len(shown["runs"]) == 1
    places = [
        each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for each in shown["runs"][0]["results"]
    ]
    assert places == [f"environments/{name}/pyproject.toml" for name in ("apples", "pears")]
    assert [each["id"] for each in shown["runs"][0]["tool"]["driver"]["rules"]] == ["P02"]


def test_files_of_a_commit_hook_are_mapped_and_formats_joined(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ["environments/apples/apples/__init__.py", "tools/tool.py", "pyproject.toml"]
    code, said = run(root, "--files", *files, "--format", "json", monkeypatch=monkeypatch)
    assert code == 1
    assert [each["name"] for each in json.loads(said)["reports"]] == ["apples"]
    folders = ["environments/apples", "environments/pears"]
    _, said = run(root, *folders, "--format", "junit", monkeypatch=monkeypatch)
    assert len(ET.fromstring(said).findall("testsuite")) == 2


def test_no_page_shows_several(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    found = CliRunner().invoke(check, ["--files", "tools/tool.py", "--format", "html"])
    assert isinstance(found.exception, RunError)


# --- what others call: the hook and the workflow ------------------------------------------------

ROOT = Path(__file__).parents[2]


def yaml(path: str) -> Any:
    module = pytest.importorskip("yaml", reason="PyYAML reads the files")
    return module.safe_load((ROOT / path).read_text(encoding="utf-8"))


def environment(**more: str) -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, **more}


def test_the_commit_hook_fails_on_the_distribution_that_a_commit_touches(root: Path) -> None:
    hooks = {each["id"]: each for each in yaml(".pre-commit-hooks.yaml")}
    assert {each["language"] for each in hooks.values()} == {"python", "system"}
    command = [*hooks["prime-core-check-local"]["entry"].split(), "tools/tool.py"]
    clean = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True)
    assert (clean.returncode, clean.stdout) == (0, "no distribution to check\n"), clean.stderr
    command.append("environments/pears/pears/__init__.py")
    failing = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True)
    assert failing.returncode == 1, failing.stderr
    assert "FAIL   P02" in failing.stdout
    assert "apples" not in failing.stdout


def test_the_workflow_checks_changed_distributions_and_leaves_a_report(root: Path) -> None:
    workflow = yaml(".github/workflows/check-changed.yml")
    assert "workflow_call" in workflow[True]  # `on` is a truth value in YAML 1.1
    steps = {each["name"]: each for each in workflow["jobs"]["check"]["steps"] if "name" in each}
    step = steps["Check what changed"]
    assert set(step["env"]) == {"SINCE", "FALLBACK", "LEVEL", "FOLDERS"}
    write(root / "environments/apples/README.md", "hello")
    cache = str(root / "cache")
    given = {
        "SINCE": "0" * 40,
        "FALLBACK": "HEAD",
        "LEVEL": "bronze",
        "FOLDERS": "environments tools",
    }
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        cwd=root, env=environment(**given, PRIME_CORE_CACHE=cache), capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "::error file=environments/apples/pyproject.toml" in done.stdout
    assert "pears" not in done.stdout
    report = json.loads((root / "check.sarif").read_text())
    assert report["runs"][0]["results"]


def test_this_repository_calls_the_workflow_it_offers() -> None:
    jobs = yaml(".github/workflows/ci.yml")["jobs"]
    assert jobs["check"]["uses"] == "./.github/workflows/check-changed.yml"
    inputs = yaml(".github/workflows/check-changed.yml")[True]["workflow_call"]["inputs"]
    assert set(jobs["check"]["with"]) <= set(inputs)
    assert [each.get("run") for each in jobs["test"]["steps"]][-1] == ".ci/run"
