"""Wheels as they come: what doesn't belong into one is refused, named, and never run."""

from __future__ import annotations

import xml.etree.ElementTree as ET
import zipfile
from pathlib import Path

import pytest
from check_fixtures import write
from check_words import GOOD, Files
from hostile_support import statuses

from prime_core.api import FormatError
from prime_core.check.checking import Order, check
from prime_core.check.formats import render
from prime_core.check.outcome import Report
from prime_core.check.staging import unpack

INFO = "prime_env_words-0.1.0.dist-info"


def archive(path: Path, *members: tuple[zipfile.ZipInfo | str, str]) -> Path:
    """A zip file with these members, whatever they are called."""
    with zipfile.ZipFile(path, "w") as made:
        for name, text in members:
            info = zipfile.ZipInfo("x") if isinstance(name, str) else name
            info.filename = name if isinstance(name, str) else info.filename
            made.writestr(info, text)
    return path


def wheel(folder: Path, extra: Files) -> Path:
    """The good distribution's wheel, with more files."""
    files = {name: text for name, text in GOOD.items() if name.startswith("prime_env_words/")}
    files |= {
        f"{INFO}/METADATA": "Metadata-Version: 2.4\nName: prime-env-words\nVersion: 0.1.0\n"
        "Requires-Dist: prime-core>=0.1,<1\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\nTag: py3-none-any\n",
        f"{INFO}/entry_points.txt": "[prime_core]\nenvironment.words = prime_env_words\n",
        **extra,
    }
    files[f"{INFO}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{INFO}/RECORD"])
    return archive(folder / "prime_env_words-0.1.0-py3-none-any.whl", *files.items())


def checked(path: Path) -> Report:
    """A check of what a wheel's content decides."""
    return check(Order(str(path), "bronze", ("P07", "P13", "I01")))


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.py", "leads outside"),
        ("/etc/evil.py", "leads outside"),
        ("a/../../evil.py", "leads outside"),
        ("a\\evil.py", "leads outside"),
        ("a//evil.py", "isn't plain"),
        ("./evil.py", "isn't plain"),
        (".", "isn't plain"),
        ("a-1.data/scripts/evil", "outside of the module"),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused(name: str, reason: str, tmp_path: Path) -> None:
    names, _, refused = unpack(archive(tmp_path / "w", ("a.py", ""), (name, "x")), tmp_path / "s")
    assert names == ("a.py",)
    assert [reason in each for each in refused] == [True]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["w", "a.py"]


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_links_and_doubles_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("a/link")
    link.external_attr = 0o120777 << 16
    made = archive(tmp_path / "w", ("a/b.py", "first"), ("a/b.py", "second"), (link, "/etc/passwd"))
    names, _, refused = unpack(made, tmp_path / "s")
    assert names == ("a/b.py",)
    assert (tmp_path / "s/a/b.py").read_text() == "first"
    assert [each.partition(": ")[2] for each in refused] == [
        "it stands there twice",
        "it is a symbolic link",
    ]


def test_what_cannot_be_unpacked_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nameless = archive(tmp_path / "nameless", ("", "x"))
    twice = archive(tmp_path / "twice", ("a", "x"), ("a/b", "x"))
    long = archive(tmp_path / "long", ("x" * 5000, "x"))
    for number, path in enumerate((nameless, twice, long, write({"no": "zip"}, tmp_path) / "no")):
        with pytest.raises(FormatError, match="can't be unpacked"):
            unpack(path, tmp_path / f"site-{number}")
    monkeypatch.setattr("prime_core.check.staging.WHEEL_BYTES", 3)
    with pytest.raises(FormatError, match="unpacks to more than"):
        unpack(archive(tmp_path / "bomb", ("a", "xx"), ("b", "xx")), tmp_path / "site")


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("zzz_words.pth", "zzz_words.pth stands at the top of the wheel"),
        ("sitecustomize.py", "sitecustomize.py stands at the top of the wheel"),
        ("prime_env_words-0.1.0.data/purelib/other.py", "is installed outside of the module"),
        ("prime_env_words-0.1.0.data/data/bin/python", "is installed outside of the module"),
    ],
)
def test_a_file_that_would_land_beside_the_module_fails_and_runs_nowhere(
    name: str, said: str, tmp_path: Path
) -> None:
    code = f"import os; os.system('touch {tmp_path / 'ran'}'); os.abort()\n"
    report = checked(wheel(tmp_path, {name: code}))
    assert statuses(report)["P07"] == "failed"
    assert said in "\n".join(each.seen for each in report.outcomes[0].findings)
    assert statuses(report)["P13"] == "undecided"
    assert not (tmp_path / "ran").exists()


@pytest.mark.integration
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("json", "Python's own"),
        ("prime-core", "prime-core's own"),
        ("pydantic", "of what it needs"),
        ("yaml", "of another distribution"),
    ],
)
def test_a_module_that_would_hide_another_fails_and_runs_nowhere(
    name: str, said: str, tmp_path: Path
) -> None:
    module = name.replace("-", "_")
    files = {
        path.replace("prime_env_words", module): text.replace("prime_env_words", module).replace(
            "prime-env-words", name
        )
        for path, text in GOOD.items()
    }
    files[f"{module}/__init__.py"] = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    report = checked(write(files, tmp_path / "source"))
    assert statuses(report) == {"P07": "failed", "P13": "undecided", "I01": "undecided"}
    assert said in report.outcomes[0].findings[0].seen
    assert not (tmp_path / "ran").exists()


def test_names_with_control_characters_reach_no_terminal_and_break_no_format(
    tmp_path: Path,
) -> None:
    escape = "\x1b[2J"
    metadata = f"Metadata-Version: 2.4\nName: words{escape}\n ::error::X\nVersion: 0.1{escape}\n"
    metadata += f"License-Expression: {escape}\nRequires-Dist: a{escape}\n"
    entries = f"[x{escape}]\na=b\n[prime_core]\nenvironment.words{escape} = words{escape}\n"
    files = {f"{INFO}/METADATA": metadata, f"{INFO}/entry_points.txt": entries, f"{escape}.py": ""}
    static = tuple(f"P{number:02}" for number in range(1, 13))
    report = check(Order(str(wheel(tmp_path, files)), "bronze", static))
    for form in ("text", "junit", "github", "sarif", "json", "html"):
        said = render(report, form, verbose=True)
        assert all(char.isprintable() or char == "\n" for char in said), form
        assert not [line for line in said.splitlines() if line.startswith("::error::X")]
    ET.fromstring(render(report, "junit"))


@pytest.mark.integration
def test_the_same_wheel_without_it_passes(tmp_path: Path) -> None:
    assert set(statuses(checked(wheel(tmp_path, {}))).values()) == {"passed"}
