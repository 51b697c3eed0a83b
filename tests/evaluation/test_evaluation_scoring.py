"""`prime-core score --completions` through real hosts: parallel, resumable, the same each time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from prime_core.api import DatasetError, RunError
from prime_core.cli.score import score

pytestmark = pytest.mark.integration

ENV = ["arithmetic", "--with", "digits=1", "--with", "kind=addition"]
FILES = ("report.json", "report.html", "samples.parquet", "tasks.parquet")

# The journal kills its own process: before its n-th unit is written, or in the middle of it.
KILLED = """
import os, signal, sys
from prime_core.evaluation import journal
from prime_core.cli.main import main
before, half = int(sys.argv.pop(1)), sys.argv.pop(1) == "half"
original, counted = journal.Journal._write, []
def write(self, record):
    counted.append(record)
    if len(counted) > before:
        if half:
            os.pwrite(self._handle, b'{"unit":99,"resu', self._size)
        os.kill(os.getpid(), signal.SIGKILL)
    return original(self, record)
journal.Journal._write = write
main()
"""


def invoke(*arguments: str) -> Any:
    result = CliRunner().invoke(score, [*ENV, *arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def answer(index: int, way: int) -> str:
    """Two guesses, some of them right, and none."""
    return (str(1 + index % 9), str(10 + index % 5), "I don't know")[way % 3]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completions") / "c.jsonl"
    rows = [
        {"index": n % 40, "completion": answer(n % 40, n), "id": f"r{n}", "token_count": n}
        for n in range(200)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(scope="module")
def whole(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("whole")
    assert invoke("--completions", str(file), "--out", str(out), "--workers", "1").exit_code == 0
    return out


def test_every_row_is_judged_in_its_place(whole: Path) -> None:
    rows = pq.read_table(whole / "samples.parquet").to_pylist()
    assert [row["row"] for row in rows] == list(range(200))
    assert [row["id"] for row in rows[:2]] == ["r0", "r1"]
    assert [row["task"] for row in rows[:2]] == ["addition:1+0", "addition:7+3"]
    assert [row["status"] for row in rows[:3]] == ["scored", "scored", "invalid_output"]
    report = json.loads((whole / "report.json").read_text())
    assert report["completions"] == 200
    assert report["tasks"] == len(report["per_task"]) == 40
    assert report["per_task"][0]["completions"] == 5
    assert report["statuses"]["error"] == 0
    assert report["mean"]["mean"] == pytest.approx(
        sum(row["value"] or 0.0 for row in rows) / 200, abs=1e-12
    )
    tasks = pq.read_table(whole / "tasks.parquet").to_pylist()
    assert 0 < sum(task["passes"] for task in tasks) == sum(row["value"] == 1.0 for row in rows)
    page = (whole / "report.html").read_text()
    assert "I don&#x27;t know" in page  # the examples' texts come from the file


def test_more_workers_find_the_same(file: Path, whole: Path, tmp_path: Path) -> None:
    result = invoke("--completions", str(file), "--out", str(tmp_path), "--workers", "2")
    assert "200 of 200 completions" in result.stderr
    assert "pass@1" in result.stdout
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name


def test_a_process_killed_at_any_instant_goes_on(file: Path, whole: Path, tmp_path: Path) -> None:
    call = [*ENV, "--completions", str(file), "--out", str(tmp_path), "--workers", "1"]
    sizes = []
    # The first line of all is the settings', which a later process finds there.
    for before, how in ((0, "half"), (4, "before"), (3, "half")):
        done = subprocess.run(
            [sys.executable, "-c", KILLED, str(before), how, "score", *call],
            capture_output=True,
            text=True,
        )
        assert done.returncode == -9, done.stderr
        assert not (tmp_path / "report.html").exists()
        sizes.append((tmp_path / "journal.jsonl").read_bytes().count(b"\n"))
    assert sizes == [0, 4, 7]
    printed = json.loads(invoke(*call[len(ENV) :], "--json").stdout)
    assert printed["completions"] == 200
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (whole / name).read_bytes(), name
    lines = (tmp_path / "journal.jsonl").read_text().splitlines()
    units = [json.loads(line)["unit"] for line in lines[1:]]
    assert sorted(units) == list(range(13))


def test_a_changed_file_doesnt_mix_with_its_past(file: Path, whole: Path, tmp_path: Path) -> None:
    changed = tmp_path / "c.jsonl"
    changed.write_text(file.read_text().replace("I don't know", "no idea"))
    with pytest.raises(RunError, match="other settings: completions was"):
        invoke("--completions", str(changed), "--out", str(whole))


def test_rows_that_cant_be_used_are_named_or_left_out(tmp_path: Path) -> None:
    file = tmp_path / "c.jsonl"
    rows: list[dict[str, Any]] = [
        {"index": 0, "completion": "0"},
        {"index": 10**9, "completion": "0"},
        {"task": "absent", "completion": "0"},
        {"index": 1},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    call = ["--completions", str(file), "--out", str(tmp_path / "out"), "--workers", "1"]
    with pytest.raises(DatasetError) as caught:
        invoke(*call)
    assert "3 rows can't be used" in str(caught.value)
    assert "row 2: there is no task 'absent'" in str(caught.value)
    printed = json.loads(invoke(*call, "--skip-bad", "--json").stdout)
    assert printed["completions"] == 1
    assert "3 rows couldn't be used" in printed["notes"][0]


def test_arguments_that_mean_nothing_are_refused(file: Path, tmp_path: Path) -> None:
    assert "either --completion FILE or --completions" in invoke().output
    both = invoke("--completions", str(file), "--completion", "-").output
    assert "either --completion FILE or --completions" in both
    assert "rows name their tasks" in invoke("--completions", str(file), "--index", "0").output
    with pytest.raises(RunError, match="no place 'moon'"):
        invoke("--completions", str(file), "--on", "moon", "--out", str(tmp_path))
