"""What a stranger's folder names is read in our own process: it never waits, and has limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from check_fixtures import write
from check_words import GOOD, PYPROJECT

from prime_core.api import FormatError
from prime_core.check.changes import is_plugin_distribution
from prime_core.check.checks_file import CaseEntry
from prime_core.check.distribution import Distribution, read_source
from prime_core.check.evidence import read
from prime_core.check.plain_files import read_plain
from prime_core.check.registry import find, rules
from prime_core.check.staging import _checks
from prime_core.check.subject import Blocked, Subject
from prime_core.check.synthetic import listing

ODD = (
    "5",
    '"x"',
    "[]",
    "[1]",
    "{}",
    "true",
    "1979-05-27",
    '[""]',
    "[{}]",
    "{ a = 1 }",
    '"\\u0000"',
)
KEYS = ("project", "project.name", "project.version", "project.readme", "project.license",
        "project.requires-python", "project.dependencies", "project.dynamic", "project.authors",
        "project.entry-points", "project.entry-points.prime_core",
        "project.entry-points.prime_core.x", "build-system", "tool.hatch")  # fmt: skip


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "folder", "absent"])
def test_what_is_no_plain_file_is_refused_at_once(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if name == "pipe":
        os.mkfifo(path)
    elif name == "folder":
        path.mkdir()
    with pytest.raises((FormatError, OSError)):
        read_plain(path, 10)
    assert read_source(path) == ""
    with pytest.raises(FormatError):
        read(path, "replay")
    with pytest.raises(Blocked, match="can't be read"):
        listing(CaseEntry(plugin="verifier.x", tasks=str(path)))


def test_a_large_file_is_cut_or_refused_and_a_link_followed_or_refused(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_bytes(b"x" * 11)
    link.symlink_to(file)
    with pytest.raises(FormatError, match="more than 10 bytes"):
        read_plain(file, 10)
    assert read_plain(link, 10, cut=True) == b"x" * 10
    with pytest.raises(OSError, match="symbolic link"):
        read_plain(link, 20, follow=False)


@pytest.mark.parametrize("name", ["pyproject.toml", "checks.toml"])
def test_a_pipe_in_place_of_a_file_of_the_source_is_a_finding(name: str, tmp_path: Path) -> None:
    folder = write({**GOOD}, tmp_path / "words")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    checks, problem = _checks(folder)
    found = Distribution(str(folder), folder, None, checks=checks, checks_error=problem)
    assert ("no plain file" in problem) is (name == "checks.toml")
    assert ("no plain file" in found.pyproject_error) is (name == "pyproject.toml")


@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_another_type_never_breaks_a_static_rule(key: str, tmp_path: Path) -> None:
    static = [rule for rule in rules() if rule.cost == "static" and not rule.kinds]
    for value in (*ODD, "[" * 50_000):
        (tmp_path / "pyproject.toml").write_text(f"{key} = {value}\n")
        assert is_plugin_distribution(tmp_path) in (True, False)
        found = Distribution(str(tmp_path), tmp_path, None, "no wheel")
        for rule in static:
            rule.examine(Subject(found, None))  # type: ignore[arg-type]


def test_a_build_backend_that_is_not_here_is_named(tmp_path: Path) -> None:
    folder = write(dict(GOOD), tmp_path)
    said = "it ended with code 1: ModuleNotFoundError: No module named 'hatchling'"
    for error, fix in ((said, "pip install 'hatchling'"), ("it ended with code 1", "")):
        found = Distribution(str(folder), folder, None, error)
        (finding,) = find("P06").examine(Subject(found, None)).findings  # type: ignore[arg-type, union-attr]
        assert finding.fix.endswith(fix)
        assert bool(finding.fix) is bool(fix)


def test_a_readme_that_never_ends_is_cut(tmp_path: Path) -> None:
    folder = write(dict(GOOD), tmp_path)
    (folder / "pyproject.toml").write_text(PYPROJECT.replace("README.md", "/dev/zero"))
    assert Distribution(str(folder), folder, None).readme == ""
