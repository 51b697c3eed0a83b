"""Reports: what they say, that they escape all they show, and how they look in a browser."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from prime_core.api import Message, Score
from prime_core.evaluation.judged import Judged
from prime_core.evaluation.measuring import ENDPOINT_NOTE
from prime_core.evaluation.report_files import Report, write_report
from prime_core.evaluation.summary import Summary, summarise

NASTY = "<script>alert(\"x\")</script> & 'quotes' \x00\ud800 " + "long" * 3000
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
browser = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on the PATH")


def some() -> list[Judged]:
    found = []
    for task in range(30):
        for sample in range(4):
            score = Score(1.0 if (task * 7 + sample * 5) % 9 < 4 else 0.25)
            if (task, sample) == (3, 1):
                score = Score(None, "error", evidence={"kind": "timeout", "detail": NASTY})
            if (task, sample) == (4, 2):
                score = Score(0.0, "invalid_output", {"format": 0.0}, {"answer": NASTY})
            found.append(
                Judged(
                    task,
                    f"task/{'x' * task}<b>{task}",
                    sample,
                    score,
                    text=NASTY,
                    messages=(Message("assistant", NASTY), Message("user", NASTY)),
                    finish_reason="length" if sample == 3 else "stop",
                    tokens=100 + task,
                    prompt_tokens=10,
                    cost=0.5,
                )
            )
    return found


def report(**changes: object) -> Report:
    summary = summarise(some(), (0.0, 1.0), target=110, left={NASTY[:80]: 2})
    values = {
        "kind": "eval",
        "title": "model <i> on toy",
        "lead": "30 tasks",
        "settings": {"text": NASTY},
        "score_range": (0.0, 1.0),
        "summary": summary,
        "notes": [ENDPOINT_NOTE],
    }
    return Report(**(values | changes))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(folder, report(), some())
    return folder


def test_a_judged_completion_survives_the_journal() -> None:
    for one in some():
        assert Judged.from_json(json.loads(json.dumps(one.to_json()))) == one


def test_the_numbers_are_right() -> None:
    found = summarise(some(), (0.0, 1.0), target=110)
    assert (found.completions, found.tokens, found.prompt_tokens) == (120, 13740, 1200)
    assert found.cost == 60.0
    assert dict(found.statuses) == {"scored": 118, "invalid_output": 1, "abstained": 0, "error": 1}
    assert list(found.passing) == [1, 2, 4]
    assert found.passing[4].tasks == 29  # one task has but three scored completions
    assert found.errors[0][0].startswith("timeout: <script>")
    assert found.lengths is not None
    assert (found.lengths.quantiles, found.lengths.truncated) == ((100, 103, 115, 126, 129), 0.25)
    assert found.budget is not None
    assert found.budget.mean_error == pytest.approx(sum(abs(n - 10) for n in range(30)) / 30)
    assert sum(count for _, count in found.histogram) == 119
    assert [len(shown) for shown in found.examples.values()] == [1, 1, 3, 3]


def test_lower_marks_pass_more_and_nothing_is_a_summary_too() -> None:
    low = summarise(some(), (0.0, 1.0), pass_mark=0.25, ks=[1])
    assert low.passing[1].mean is not None
    assert low.passing[1].mean > 0.99
    empty: Summary = summarise([], (0.0, 1.0))
    assert (empty.completions, empty.mean.mean, empty.lengths) == (0, None, None)


def test_an_empty_report_can_be_written(tmp_path: Path) -> None:
    write_report(tmp_path, report(summary=summarise([], (0.0, 1.0))), [])
    assert pq.read_table(tmp_path / "samples.parquet").num_rows == 0
    assert pq.read_table(tmp_path / "tasks.parquet").num_rows == 0


def test_everything_is_escaped(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;alert" in page
    assert "\x00" not in page
    assert "characters …" in page
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", page)
    assert all(len(line) < 100_000 for line in page.splitlines())
    rows = pq.read_table(out / "samples.parquet").to_pylist()
    assert len(rows) == 120
    assert json.loads(rows[0]["messages"])[1]["role"] == "user"
    assert sorted(file.name for file in out.iterdir()) == [
        "report.html", "report.json", "samples.parquet", "tasks.parquet",
    ]  # fmt: skip


PROBE = """<!DOCTYPE html><meta charset="utf-8"><iframe src="{page}" width="360" height="640"
onload="const d = this.contentDocument, e = d.documentElement;
const style = this.contentWindow.getComputedStyle(d.body);
const bar = d.querySelector('.mark').getBoundingClientRect().width;
document.body.dataset.seen = [e.scrollWidth, e.clientWidth, style.backgroundColor, bar].join('|')"
></iframe>"""


@browser
@pytest.mark.integration
def test_it_fits_a_phone_and_is_dark_where_dark_is_preferred(out: Path, tmp_path: Path) -> None:
    probe = tmp_path / "probe.html"
    probe.write_text(PROBE.format(page=(out / "report.html").as_uri()))
    colours = []
    for more in ([], ["--blink-settings=preferredColorScheme=0"]):
        assert CHROMIUM is not None
        done = subprocess.run(
            [
                *(CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
                *("--disable-background-networking", "--disable-sync", "--enable-logging=stderr"),
                *("--allow-file-access-from-files", f"--user-data-dir={tmp_path / 'profile'}"),
                *(*more, "--dump-dom", probe.as_uri()),
            ],
            capture_output=True,
            text=True,
        )
        assert "CONSOLE" not in done.stderr, done.stderr  # nothing breaks the page's own policy
        seen = re.search(r'data-seen="([^"]*)"', done.stdout)
        assert seen is not None, done.stdout[:500]
        width, visible, colour, bar = seen[1].split("|")
        assert int(width) <= int(visible) <= 360
        assert float(bar) == 4.0  # styles that stand in the page's tags are in force
        colours.append(colour)
    assert colours == ["rgb(255, 255, 255)", "rgb(21, 24, 29)"]
