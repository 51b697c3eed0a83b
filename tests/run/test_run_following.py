"""Following a run: partial lines, waits, rates."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

from prime_core.run.following import Following
from prime_core.run.progress import Progress, progress_line
from prime_core.store.metrics import MetricsLog


def test_a_half_written_line_waits_for_its_end(tmp_path: Path) -> None:
    following = Following(tmp_path)
    assert following.read() == []
    line = json.dumps({"time": 1.0, "process": "trainer", "step": 4, "loss/mean": 0.5}) + "\n"
    path = tmp_path / "metrics.jsonl"
    path.write_text(line[:20])
    assert following.read() == []
    with path.open("a") as out:
        out.write(line[20:])
    assert [record["step"] for record in following.read()] == [4]
    assert following.step == 5
    assert following.read() == []


def test_a_line_cut_by_a_full_disk_is_passed_over(tmp_path: Path) -> None:
    line = json.dumps({"time": 1.0, "process": "trainer", "step": 4, "loss/mean": 0.5}) + "\n"
    (tmp_path / "metrics.jsonl").write_text(line[:20] + line + line)
    assert [record["step"] for record in Following(tmp_path).read()] == [4]


def test_waits_are_named_until_they_end(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, "trainer")
    log.log(3, waiting_for="the batch of step 3", waiting_s=50)
    following = Following(tmp_path)
    following.read()
    (sentence,) = following.waiting()
    assert sentence.startswith("trainer waits for the batch of step 3 (")
    assert following.waiting(longer_than_s=70) == []
    log.log(3, waiting_for="")
    following.read()
    assert following.waiting() == []
    log.close()


def test_rates_are_taken_over_the_last_records(tmp_path: Path) -> None:
    following = Following(tmp_path)
    path = tmp_path / "metrics.jsonl"
    records = [
        {"time": 10.0 + i, "process": "worker-0", "step": i, "completion_tokens": 50}
        for i in range(5)
    ]
    records += [
        {
            "time": 20.0,
            "process": "trainer",
            "step": i,
            "loss/mean": 0.0,
            "reward/mean": 0.25 * i,
            "time/idle_s": 1.0,
            "time/busy_s": 3.0,
            "lag/mean": 2.0,
        }
        for i in range(3)
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    following.read()
    assert following.tokens_per_second() == 50.0
    assert following.mean("reward/mean") == 0.25
    assert following.idle_share() == 0.25
    line = progress_line(following, 10, 61.4)
    assert line.startswith("step 3/10  61 s  reward 0.250  tokens/s 50  lag 2.0")
    assert "trainer idle 25%" in line


def test_progress_says_events_at_once_and_figures_seldom(tmp_path: Path) -> None:
    out = io.StringIO()
    progress = Progress(10, out=out)
    following = Following(tmp_path, waits={"worker-0": ("version 3", time.time() - 90)})
    progress.update(following, force=True)
    progress.update(following)
    progress.say("worker-0 was killed by SIGKILL; restarting in 0.2 s")
    progress.close()
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    assert "[worker-0 waits for version 3 (90 s)]" in lines[0]
    assert lines[1].startswith("worker-0 was killed")
