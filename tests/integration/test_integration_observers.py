"""Observers in a whole run: samples are written, and one that raises costs nothing but a count."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hosting_support import write_distribution
from integration_support import ROOT, prime_core, steps_of, submitted, train, write_config
from test_integration_documents import play
from tokenizers import Tokenizer

from prime_core.store.metrics import read_metrics

pytestmark = pytest.mark.integration

STEPS = 2

# Says which process hears that a run starts, and then fails at everything.
RAISING = """
import os
from pathlib import Path

from prime_core.api import hookimpl


@hookimpl
def prime_run_started(config):
    with (Path(config["run"]["dir"]).parent / "started").open("a") as out:
        out.write(f"{os.getpid()}\\n")


@hookimpl
def prime_group_finished(group):
    raise RuntimeError("no group for me")


@hookimpl
def prime_step_finished(step, metrics):
    raise SystemExit("no step for me")
"""


@pytest.fixture(scope="module")
def observed(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run that two observers watch; its folder and summary."""
    folder = tmp_path_factory.mktemp("observed")
    entry = "[prime_core]\nobserver.raising = raising_observer\n"
    write_distribution(folder / "site", "raising-dist", {"raising_observer": RAISING}, entry)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(folder / "site"))
        extra = '\n[plugins]\nobservers = ["raising", "samples"]\n'
        summary = train(write_config(folder, tiny_model, steps=STEPS, extra=extra))
    return folder, summary


def test_every_process_that_observes_hears_first_that_the_run_starts(
    observed: tuple[Path, Any],
) -> None:
    folder, _ = observed
    locks = folder / "run" / "locks"
    told = (folder / "started").read_text().split()
    roles = [(locks / f"{name}.lock").read_text().strip() for name in ("trainer", "intake")]
    supervisor = (locks / "supervisor.lock").read_text().strip()
    assert told[0] == supervisor
    assert sorted(told) == sorted([supervisor, *roles])


def test_an_observer_that_raises_is_counted_and_not_fatal(observed: tuple[Path, Any]) -> None:
    folder, summary = observed
    assert summary["steps"] == STEPS
    assert summary["restarts"] == 0
    records = read_metrics(folder / "run")
    groups = sum(record.get("intake/groups", 0) for record in records)
    assert sum(record.get("intake/observer_failures", 0) for record in records) == groups > 0
    assert sum(record.get("trainer/observer_failures", 0) for record in records) == STEPS
    assert len(steps_of(folder / "run")) == STEPS
    log = (folder / "run" / "logs" / "intake.log").read_text()
    assert "observer raising of raising-dist 0.1 failed in prime_group_finished" in log
    assert "no group for me" in log


def test_samples_say_what_the_submissions_hold(observed: tuple[Path, Any]) -> None:
    folder, _ = observed
    run_dir = folder / "run"
    words = Tokenizer.from_file(str(run_dir / "model" / "tokenizer.json"))
    told = {}
    for file in sorted((run_dir / "samples").iterdir()):
        for line in file.read_text().splitlines():
            group = json.loads(line)
            assert file.stem == f"{group['step']:06d}"
            assert group["group"] not in told
            told[group["group"]] = group
    rows = submitted(run_dir)
    assert told.keys() == {row.group_id for row in rows}
    for row in rows:
        group = told[row.group_id]
        assert group["task"] == row.task_id
        assert group["environment"] == row.environment
        assert group["prompt"] == words.decode(row.prompt_tokens)
        assert group["prompt"].startswith(row.task_id.removeprefix("addition:") + "=")
        assert group["length_budget"] == row.length_budget
        said = group["rollouts"][row.sample]
        assert said["completion"] == words.decode(row.completion_tokens)
        assert said["turns"] == [{"role": "assistant", "content": said["completion"]}]
        assert (said["length"], said["finish_reason"]) == (row.length, row.finish_reason)
        assert (said["status"], said["score"]) == (row.score_status, row.score)
        assert (said["reward"], said["reward_parts"]) == (row.reward, row.reward_parts)


def test_the_readme_of_samples_reads_them(observed: tuple[Path, Any]) -> None:
    """The block of the README, run word for word where a run lies in runs/run."""
    folder, _ = observed
    readme = ROOT / "plugins/observers/README.md"
    code = re.findall(r"^```python\n(import json.*?)^```$", readme.read_text(), re.M | re.S)[0]
    (folder / "runs").mkdir(exist_ok=True)
    (folder / "runs" / "run").symlink_to(folder / "run")
    code = code.replace("000003", "000000")
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    groups = (folder / "run/samples/000000.jsonl").read_text().count("\n")
    assert len(done.stdout.splitlines()) == groups
    assert "task" in done.stdout


def test_the_commands_of_the_how_to_watch_a_run(observed: tuple[Path, Any]) -> None:
    """Its blocks marked `run`, word for word, on a run in runs/watched."""
    folder, _ = observed
    place = folder / "watching"
    (place / "runs").mkdir(parents=True)
    (place / "runs" / "watched").symlink_to(folder / "run")
    printed = play(ROOT / "docs/how-to/watch-a-run.md", place)
    assert "the balance holds" in printed
    assert "submission accepted" in printed
    assert "inference / training" in printed
    assert "1 reward/mean" in printed
    assert "1-worker-0-0-0" in printed
    assert (place / "runs/plots/run.png").is_file()


def test_a_misspelt_observer_is_refused_with_the_nearest_name(
    tiny_model: Path, tmp_path: Path
) -> None:
    extra = '\n[plugins]\nobservers = ["sampels"]\n'
    done = prime_core("train", write_config(tmp_path, tiny_model, extra=extra), code=2)
    assert "samples" in done.stderr
    assert "config.toml" in done.stderr
