"""A check from outside: what it prints, exits with, keeps, and survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from check_fixtures import BAD, write
from check_outcomes import SMALL, failed
from check_words import GOOD

from prime_core.api import RunError
from prime_core.check.cache import Cache
from prime_core.check.checking import Order, check
from prime_core.check.distribution import Distribution
from prime_core.check.formats import render
from prime_core.check.outcome import Report
from prime_core.check.registry import find
from prime_core.check.rule import passed

pytestmark = pytest.mark.integration


def test_an_exploit_can_be_scored_again_as_printed(tmp_path: Path) -> None:
    folder = write(BAD["H01"](), tmp_path / "a folder" / "words")
    report = check(Order(str(folder), "silver", ("H01",), shrink=True))
    exploit = report.outcomes[0].findings[0].exploit
    assert exploit is not None
    assert (exploit.text, exploit.value) == ("banana", 1.0)
    again = json.loads(render(report, "json"))["rules"][0]["findings"][0]["reproduce"]
    assert f"again: {again}" in render(report, "text")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", again], env={**os.environ, "PATH": path}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert (done.returncode, ": 1 (scored)" in done.stdout) == (0, True), done.stderr


def test_scoring_a_package_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "prime_core", "score", "words", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False, input="x")

    broken = write(BAD["P06"](), tmp_path / "words")
    said = run("--package", str(broken), "--completion", "-", "--index", "0")
    assert (said.returncode, "no wheel: " in said.stderr) == (2, True)
    said = run("--package", str(broken), "--completions", str(tmp_path / "rows.jsonl"))
    assert (said.returncode, "install it to score a file" in said.stderr) == (2, True)
    other = write({**GOOD}, tmp_path / "others")
    command = [sys.executable, "-m", "prime_core", "score", "arithmetic", "--index", "0"]
    found = subprocess.run(
        [*command, "--package", str(other), "--completion", "-"],
        capture_output=True, text=True, check=False, input="x",
    )  # fmt: skip
    assert (found.returncode, "doesn't provide arithmetic" in found.stderr) == (2, True)


def test_a_long_exploit_shrinks_to_what_pays(checked: Callable[..., Report]) -> None:
    report = checked(BAD["H07"](), "H07", shrink=True)
    exploit = report.outcomes[0].findings[0].exploit
    assert exploit is not None
    assert exploit.text == "SystemExit"


def test_no_rule_runs_anything_when_the_check_s_time_is_over(tmp_path: Path) -> None:
    folder = write(GOOD, tmp_path / "words")
    limits = replace(SMALL, total_s=0.0)
    report = check(Order(str(folder), "bronze", ("P01", "P13", "I01", "T01"), limits=limits))
    said = {outcome.rule.id: outcome for outcome in report.outcomes}
    assert said.pop("P01").status == "passed"
    assert {outcome.status for outcome in said.values()} == {"undecided"}
    assert {outcome.reason.partition(";")[0] for outcome in said.values()} == {
        "the check has taken 0 s"
    }
    assert report.exit_code == 3


@pytest.mark.slow
def test_a_completion_that_hangs_shrinks_as_far_as_hosts_last(
    checked: Callable[..., Report],
) -> None:
    report = checked(BAD["R02"](), "R02", "L01", shrink=True)
    said = {outcome.rule.id: outcome for outcome in report.outcomes}
    assert (said["R02"].status, said["L01"].status) == ("failed", "passed")
    exploit = said["R02"].findings[0].exploit
    assert exploit is not None
    assert exploit.text == "9**9"
    assert exploit.detail.startswith("timeout")


def test_gold_that_is_refused_stays_whole(checked: Callable[..., Report]) -> None:
    report = checked(BAD["T01"](), "T01", shrink=True)
    exploits = [finding.exploit for finding in report.outcomes[0].findings]
    assert all(each is not None and len(each.text) == 5 for each in exploits)


def test_what_the_cache_knows_shrinks_too(tmp_path: Path) -> None:
    folder = write(BAD["H07"](), tmp_path / "words")
    for shrink, cached in ((False, False), (True, True)):
        order = Order(
            str(folder), "silver", ("H07",), cache=tmp_path / "cache", shrink=shrink, limits=SMALL
        )
        (outcome,) = check(order).outcomes
        assert outcome.cached is cached
        exploit = outcome.findings[0].exploit
        assert exploit is not None
        assert (exploit.text == "SystemExit") is shrink


def test_formats_say_rule_sight_and_fix(checked: Callable[..., Report]) -> None:
    report = checked(BAD["H01"](), "H01", "P01")
    for form in ("text", "json", "junit", "sarif", "github", "html"):
        said = render(report, form)
        assert "H01" in said, form
        assert "banana" in said, form
        assert "chance_level" in said, form
    suite = ET.fromstring(render(report, "junit"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "1")
    sarif = json.loads(render(report, "sarif"))
    assert sarif["runs"][0]["results"][0]["ruleId"] == "H01"
    assert render(report, "github").startswith("::error file=pyproject.toml,line=1,")


def test_an_exemption_needs_a_reason_and_is_counted(checked: Callable[..., Report]) -> None:
    reason = "the word banana is the pass phrase of the class this is taught in"
    files = {**BAD["H01"](), "checks.toml": f'[exempt]\nH01 = "{reason}"\n'}
    report = checked(files, "H01")
    assert report.counts == {"exempt": 1}
    assert report.exit_code == 0
    assert reason in render(report, "text")


def test_static_rules_run_nothing_of_the_package(
    checked: Callable[..., Report], tmp_path: Path
) -> None:
    files = {**GOOD, "prime_env_words/__init__.py": f"open({str(tmp_path / 'ran')!r}, 'w')\n"}
    report = checked(files, *(f"P{number:02}" for number in range(1, 13)))
    assert not failed(report)
    assert not (tmp_path / "ran").exists()


def test_results_are_kept_by_wheel_and_asked_anew_when_it_changes(tmp_path: Path) -> None:
    folder = write(GOOD, tmp_path / "words")
    order = Order(str(folder), "bronze", ("I01", "I02"), cache=tmp_path / "cache")
    assert [each.cached for each in check(order).outcomes] == [False, False]
    assert [each.cached for each in check(order).outcomes] == [True, True]
    write(BAD["I01"](), folder)
    report = check(order)
    assert [each.cached for each in report.outcomes] == [False, False]
    assert failed(report) == {"I01"}
    for _ in range(2):  # what was read is written again, whole
        again = check(order)
        assert [each.cached for each in again.outcomes] == [True, True]
        assert [each.findings for each in again.outcomes] == [
            each.findings for each in report.outcomes
        ]


def test_a_broken_file_of_the_cache_is_asked_anew(tmp_path: Path) -> None:
    folder = write(GOOD, tmp_path / "words")
    order = Order(str(folder), "bronze", ("I01",), cache=tmp_path / "cache")
    check(order)
    (kept,) = (tmp_path / "cache/checks").glob("*.json")
    whole = kept.read_text()
    distribution = Distribution(str(folder), folder, folder, wheel_digest="0" * 64)
    for left in ("", "[]", "null", '{"I01 x": 7}', '{"I01 x": {"findings": 3}}', "[" * 99_999):
        cache = Cache(tmp_path / "cache", distribution, "")
        cache.put(find("I01"), "x", passed())
        cache.save()
        (other,) = set((tmp_path / "cache/checks").glob("*.json")) - {kept}
        assert Cache(tmp_path / "cache", distribution, "").get(find("I01"), "x") == passed()
        other.write_text(left)
        assert Cache(tmp_path / "cache", distribution, "").get(find("I01"), "x") is None
    kept.write_text(whole[:-20])
    assert [each.cached for each in check(order).outcomes] == [False]


def test_a_hostile_package_hurts_nobody(checked: Callable[..., Report], tmp_path: Path) -> None:
    home, secret = Path.home(), tmp_path / "secret"
    secret.write_text("kept")
    code = (
        "import os, socket, subprocess\n"
        f"tries = [lambda: os.unlink({str(secret)!r}),\n"
        f"         lambda: open({str(home / 'hostile-was-here')!r}, 'w'),\n"
        "         lambda: socket.create_connection(('192.0.2.1', 80), 1),\n"
        "         lambda: subprocess.Popen(['sleep', '600'], start_new_session=True)]\n"
        "for each in tries:\n"
        "    try:\n"
        "        each()\n"
        "    except OSError:\n"
        "        pass\n"
        "while True: pass\n"
    )
    before = _sleepers()
    files = {**GOOD, "prime_env_words/__init__.py": code}
    folder = write(files, tmp_path / "hostile")
    from prime_core.check.limits import Limits

    report = check(Order(str(folder), "bronze", ("I01", "T01"), limits=Limits(start_s=4.0)))
    said = {outcome.rule.id: outcome.status for outcome in report.outcomes}
    assert said == {"I01": "failed", "T01": "undecided"}
    assert "didn't end in time" in report.outcomes[0].findings[0].seen
    if report.isolation.startswith("namespaces"):
        assert secret.read_text() == "kept"
        assert not (home / "hostile-was-here").exists()
        assert _sleepers() == before


def _sleepers() -> int:
    command = ["ps", "-ww", "-eo", "args"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True)
    return listed.stdout.count("sleep 600")


def test_commands_exit_as_they_say(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "prime_core", "check", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    folder = write(BAD["P02"](), tmp_path / "words")
    bad = run(str(folder), "--rule", "P02", "--no-cache")
    assert (bad.returncode, "FAIL   P02" in bad.stdout) == (1, True)
    assert run(str(folder), "--rule", "P01", "--no-cache").returncode == 0
    nothing = run(str(tmp_path / "nowhere"))
    assert (nothing.returncode, "neither a folder" in nothing.stderr) == (2, True)
    explained = run("--explain", "gold")
    assert explained.stdout.startswith("# T01: ")


def test_an_unknown_rule_ends_before_anything_is_built(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no rule is called 'X99'"):
        check(Order(str(write(GOOD, tmp_path)), "bronze", ("X99",)))
