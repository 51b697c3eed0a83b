"""The HTML report in a browser: it's whole, it escapes, and it fits a phone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from prime_core.check.formats import render
from prime_core.check.outcome import Report, outcome_of
from prime_core.check.registry import find
from prime_core.check.rule import Exploit, Finding, blocked, failed, passed

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update"]  # fmt: skip
NASTY = "</code><script>document.title='ran'</script>\x1b[2K\u202e"

# Writes how wide the page is in a window as narrow as a phone's.
PROBE = """<iframe src="{page}" width="360" height="640"
onload="const d = this.contentDocument.documentElement;
document.body.dataset.width = d.scrollWidth + '/' + d.clientWidth"></iframe>"""


def report() -> Report:
    """One outcome of every sort, with texts that want to be more."""
    exploit = Exploit(3, NASTY, NASTY, 1.0, "scored", NASTY)
    exempted = "answers within 1 % are right by the task's own words"
    label = "environment.words"
    return Report(
        name=f"prime-env-{NASTY}", version="0.1.0", target=".", asked="silver", claimed="silver",
        isolation="namespaces: no network", versions={"checker": "0", "python": "3.11"},
        outcomes=(
            outcome_of(find("P01"), "words", passed(files="3"), "", 0.1),
            outcome_of(find("H01"), label, failed(Finding(NASTY, exploit=exploit)), "", 0.1),
            outcome_of(find("T06"), label, failed(Finding("paid", exploit=exploit)), exempted, 0.1),
            outcome_of(find("N01"), label, blocked("no host can be started"), "", 0.1),
        ),
        environments={label: ["words"]},
    )  # fmt: skip


def browse(page: Path, tmp_path: Path, *arguments: str) -> str:
    """What headless Chromium prints of a page."""
    assert CHROMIUM is not None
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={tmp_path / 'profile'}", *arguments, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return done.stdout


@pytest.mark.integration
@pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")
def test_the_html_report_shows_every_outcome_and_runs_nothing(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(report(), "html"), encoding="utf-8")
    dom = browse(page, tmp_path, "--dump-dom")
    for said in ("level none", "H01 constant", "T06 mutated-gold", "no host can be started",
                 "answers within 1 %", "prime-core score words --index 3"):  # fmt: skip
        assert said in dom, said
    assert "<title>ran" not in dom
    assert "<script" not in dom
    probe = tmp_path / "phone.html"
    probe.write_text(PROBE.format(page=page.name), encoding="utf-8")
    narrow = browse(probe, tmp_path, "--allow-file-access-from-files", "--dump-dom")
    found = re.search(r'data-width="(\d+)/(\d+)"', narrow)
    assert found is not None, narrow[:500]
    assert int(found[1]) <= int(found[2]) <= 360
