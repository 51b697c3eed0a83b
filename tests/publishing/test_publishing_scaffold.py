"""A new distribution is a good one before a line of it is changed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

from prime_core.api.errors import FormatError, PrimeError, StoreError
from prime_core.publishing.names import PREFIXES, names_of
from prime_core.publishing.scaffold import Wish, create
from prime_core.publishing.wheel import build, read_wheel

PYTEST = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--import-mode=importlib", "-W", "error"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("kind", "typed", "distribution", "plugin"),
    [
        ("environment", "letters", "prime-env-letters", "letters"),
        ("environment", "prime-env-word-count", "prime-env-word-count", "word_count"),
        ("environment", " Word.Count-2 ", "prime-env-word-count-2", "word_count_2"),
        ("length_budget", "uniform", "prime-length-budget-uniform", "uniform"),
    ],
)
def test_names_follow_from_what_was_typed(kind, typed, distribution, plugin):
    names = names_of(kind, typed)
    assert (names.distribution, names.plugin) == (distribution, plugin)
    assert names.module == distribution.replace("-", "_")


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "a/b", "a\\b", "1st", "größe", "class", "x" * 41, "a\nb", "a\0"]
)
def test_what_cannot_be_a_name_is_refused(name, tmp_path):
    with pytest.raises(FormatError, match="can't be the name"):
        create(Wish("environment", name), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(tmp_path):
    made = create(Wish("reward", "brevity"), tmp_path)
    (made / "README.md").write_text("mine")
    with pytest.raises(StoreError, match="exists already"):
        create(Wish("reward", "brevity"), tmp_path)
    assert (made / "README.md").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [made.name]


@pytest.mark.parametrize("licence", ["Apache-2.0", "MIT"])
def test_awkward_answers_stay_inside_their_strings(licence, tmp_path):
    author, summary = 'Ada "L" \\ Lovelace', 'Counts "words" \\ and [tables] = 1'
    wish = Wish("environment", "words", summary, author, licence)
    made = create(wish, tmp_path)
    project = tomllib.loads((made / "pyproject.toml").read_text())["project"]
    assert (project["description"], project["authors"]) == (summary, [{"name": author}])
    assert project["license"] == licence
    assert len((made / "LICENSE").read_text()) > 500
    compile((made / "prime_env_words/__init__.py").read_text(), "made", "exec")


@pytest.mark.parametrize(
    "wish",
    [
        Wish("reward", "x", summary="a\x00b"),
        Wish("reward", "x", author="a\x1b[31m"),
        Wish("reward", "x", summary="x" * 201),
        Wish("reward", "x", licence="Anything"),
        Wish("reward", "x", licence="GPL-3.0-only"),
    ],
)
def test_answers_that_cannot_be_written_are_refused(wish, tmp_path):
    with pytest.raises(PrimeError):
        create(wish, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One new distribution of every kind."""
    folder = tmp_path_factory.mktemp("new")
    return [create(Wish(kind, "letters"), folder) for kind in PREFIXES]


@pytest.mark.integration
@pytest.mark.parametrize("kinds", [3, pytest.param(len(PREFIXES), marks=pytest.mark.slow)])
def test_every_kind_builds_installs_and_passes_its_own_tests(made, kinds, tmp_path):
    made = made[:kinds]
    venv.create(tmp_path / "clean", with_pip=False, symlinks=True)
    site = next((tmp_path / "clean/lib").glob("python*/site-packages"))
    wheels = []
    for project in made:
        out = tmp_path / project.name
        done = subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)],
            cwd=project,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        wheels += out.glob("*.whl")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--target", str(site), *map(str, wheels)], check=True)
    others = [entry for entry in sys.path if entry.endswith("site-packages")]
    (site / "zz_others.pth").write_text("".join(f"{path}\n" for path in [*others, str(ROOT)]))
    python = tmp_path / "clean/bin/python"
    done = subprocess.run(
        [python, *PYTEST, *(str(project / "tests") for project in made)],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("PYTEST")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    assert "skipped" in done.stdout  # an environment of one turn says so
    listed = subprocess.run(
        [python, "-m", "prime_core", "plugins", "list"], capture_output=True, text=True, check=True
    )
    for project in made:
        assert re.search(rf"letters +{project.name} 0\.1\.0", listed.stdout)


def test_every_kind_keeps_the_house_style(made):
    for project in made:
        for command in (["check", "--select", "E,F,W,I,UP,B,C4,SIM,RUF"], ["format", "--check"]):
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *command, "--isolated", "--line-length", "100", "."],
                cwd=project,
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_every_kind_is_typed(made, tmp_path):
    modules = [str(next(project.glob("prime_*"))) for project in made]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--explicit-package-bases", *modules],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": ":".join(str(project) for project in made)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


def test_the_wheel_is_reproducible_and_typed(made, tmp_path):
    path = build(made[0], tmp_path / "out")
    wheel = read_wheel(path.read_bytes(), path.name)
    assert wheel.plugins == (("environment", "letters", "prime_env_letters"),)
    assert {Path(name).name for name, _ in wheel.data} == {"py.typed", "tasks.jsonl"}
    assert wheel.requires[0].startswith("prime-core")
