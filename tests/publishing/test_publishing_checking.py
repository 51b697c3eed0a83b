"""A report that isn't a pass of the level that was asked for never becomes a signed record."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from publishing_support import ALICE, REPORT, tiny_wheel

from prime_core.api.errors import FormatError, IntegrityError, RunError, StoreError
from prime_core.publishing import checking
from prime_core.publishing.checking import Checked, read_report, run_check, unchecked
from prime_core.publishing.index import Index
from prime_core.publishing.names import PREFIXES
from prime_core.publishing.publication import Publication
from prime_core.publishing.publish import publish
from prime_core.publishing.scaffold import Wish, create
from prime_core.publishing.source import read_blob, read_release
from prime_core.publishing.wheel import Wheel, build, read_wheel


def test_a_pass_is_summed_up():
    checked = read_report(REPORT, "silver", "here")
    assert (checked.check.level, checked.check.passed, checked.check.exempt) == (
        "silver",
        1,
        ("X02",),
    )
    assert checked.check.checker == "prime-core 0.1.0"
    assert json.loads(checked.report) == REPORT


def test_a_published_report_names_no_folder_of_its_publisher():
    command = (
        "python -c 'print(1)' | prime-core score words --package '/home/ada/my words' --index 0"
    )
    rule = {"id": "X02", "status": "exempt", "findings": [{"reproduce": command}, 7, {}]}
    checked = read_report({**REPORT, "rules": [rule]}, "silver", "/home/ada/my words")
    assert b"ada" not in checked.report
    assert b"prime-core score words --index 0" in checked.report


def test_a_failure_names_its_rules():
    rules = [
        {"id": "T02", "status": "failed", "findings": [{"seen": "'' is paid 1"}]},
        {"id": "T03", "status": "undecided", "reason": "it takes too long"},
        *({"id": f"R{n}", "status": "failed", "title": "x"} for n in range(9)),
    ]
    with pytest.raises(RunError) as caught:
        read_report({**REPORT, "passed": False, "rules": rules}, "silver", "here")
    text = str(caught.value)
    assert "T02 failed: '' is paid 1" in text
    assert "T03 undecided: it takes too long" in text
    assert "and 3 more" in text
    assert "prime-core check here --level silver" in text


@pytest.mark.parametrize(
    "report",
    [
        None,
        [],
        {},
        {"passed": True},
        {**REPORT, "passed": "yes"},
        {**REPORT, "rules": {}},
        {**REPORT, "rules": ["x"]},
        {**REPORT, "level": "gold"},
        {key: value for key, value in REPORT.items() if key != "level"},
    ],
)
def test_what_is_no_report_of_that_level_is_refused(report):
    with pytest.raises(FormatError):
        read_report(report, "silver", "here")


@pytest.mark.parametrize("code", ["print('no json')", "import sys; sys.exit('broken')"])
def test_a_check_that_gives_no_report_is_an_error(monkeypatch, tmp_path, code):
    script = tmp_path / "python"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n')
    script.chmod(0o755)
    monkeypatch.setattr(checking.sys, "executable", str(script))
    with pytest.raises(RunError, match="without a report"):
        run_check(tmp_path, "bronze", read_wheel(*tiny_wheel("a-b")[::-1]))


@pytest.fixture
def project(tmp_path) -> Path:
    return create(Wish("reward", "brevity"), tmp_path / "new")


def test_nothing_is_published_that_fails(project, tmp_path):
    def fails(path: Path, level: str, wheel: Wheel) -> Checked:
        raise RunError("it doesn't pass")

    url = str(tmp_path / "index")
    with pytest.raises(RunError, match="doesn't pass"):
        publish(project, url, level="bronze", signer=ALICE, checker=fails)
    assert not (tmp_path / "index").exists()


def test_what_is_published_is_what_was_built_and_checked(project, tmp_path):
    def passes(path: Path, level: str, wheel: Wheel) -> Checked:
        return read_report({**REPORT, "level": level}, level, str(path))

    url = str(tmp_path / "index")
    done = publish(project, url, level="silver", signer=ALICE, checker=passes)
    assert done.problems == ()
    source = Index(url).source
    said = read_release(source, "prime-reward-brevity", "0.1").record
    assert (said.value, said.signer) == (done.record, ALICE.address)
    report = json.loads(read_blob(source, said.value.report_sha256, "report.json"))
    assert report["rules"] == REPORT["rules"]
    names = {each.name for each in said.value.dependencies}
    assert {"prime-core", "pydantic", "numpy"} <= names
    with pytest.raises(StoreError, match="versions never change"):
        publish(project, url, level="silver", signer=ALICE, checker=passes)


def test_an_unchecked_version_says_so_in_its_record(project, tmp_path):
    done = publish(project, str(tmp_path / "index"), level="none", signer=ALICE)
    assert done.record.check == unchecked().check
    raw = Index(str(tmp_path / "index")).store.get("records/prime-reward-brevity/0.1/record.json")
    assert Publication.read(raw, ALICE.address, where="here").value.check.level == "none"


def test_a_distribution_without_plugins_is_refused(project, tmp_path):
    text = (project / "pyproject.toml").read_text()
    start, end = text.index("[project.entry-points"), text.index("[tool.hatch")
    (project / "pyproject.toml").write_text(text[:start] + text[end:])
    with pytest.raises(FormatError, match="declares no plugin"):
        publish(project, str(tmp_path / "index"), level="none", signer=ALICE)


@pytest.mark.integration
def test_the_real_check_passes_what_is_new_and_is_held_to_the_wheel(project, tmp_path):
    path = build(project, tmp_path / "out")
    wheel = read_wheel(path.read_bytes(), path.name)
    checked = run_check(project, "bronze", wheel)
    assert checked.check.level == "bronze"
    assert checked.check.passed > 10
    module = project / "prime_reward_brevity/reward.py"
    module.write_text(module.read_text() + "\n")
    with pytest.raises(IntegrityError, match="other files than the wheel"):
        run_check(project, "bronze", wheel)


@pytest.mark.slow
@pytest.mark.parametrize("kind", list(PREFIXES))
def test_every_new_distribution_passes_silver(kind, tmp_path):
    project = create(Wish(kind, "letters"), tmp_path / "new")
    path = build(project, tmp_path / "out")
    checked = run_check(project, "silver", read_wheel(path.read_bytes(), path.name))
    assert (checked.check.level, checked.check.exempt) == ("silver", ())
