"""Reward drift: worked by hand, then found between two versions of a real distribution."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prime_core.api.errors import FormatError
from prime_core.publishing.drift import Stored, allows_drift, measure, read_rollouts
from prime_core.publishing.scaffold import Wish, create


def group(name: str, size: int = 4) -> list[Stored]:
    return [Stored(name, f"task-{name}", f"{name}{at}") for at in range(size)]


def test_equal_scores_are_no_drift():
    scores = [1.0, 0.0, 0.0, None]
    found = measure(group("a"), scores, list(scores), highest=(1, 1))
    assert not found.drifts
    assert (found.changed, found.gained, found.lost, found.advantage_change) == (0, 0, 0, 0.0)
    assert found.rank_correlation == pytest.approx(1.0)
    assert (found.unscored_old, found.unscored_new) == (1, 1)


def test_flips_are_counted_by_task_and_direction():
    old, new = [1.0, 0.0, 0.0, 0.0] * 2, [0.0, 1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    found = measure([*group("a"), *group("b")], old, new, highest=(1, 1))
    assert found.drifts
    assert (found.changed, found.gained, found.lost) == (3, 2, 1)
    assert [
        (each.task, each.changed, each.passes_old, each.passes_new) for each in found.worst
    ] == [("task-a", 3, 1, 2)]
    assert (found.flipped_groups, found.signal_old, found.signal_new) == (1, 2, 2)


def test_a_shift_of_every_score_moves_no_advantage():
    found = measure(group("a"), [0.0, 0.5, 0.5, 1.0], [1.0, 1.5, 1.5, 2.0], highest=(1, 2))
    assert found.changed == 4
    assert found.advantage_change == pytest.approx(0.0, abs=1e-12)
    assert found.rank_correlation == pytest.approx(1.0)


def test_a_reversal_turns_ranks_and_advantages_over():
    found = measure(group("a"), [0.0, 0.2, 0.6, 1.0], [1.0, 0.8, 0.4, 0.0], highest=(1, 1))
    assert found.rank_correlation == pytest.approx(-1.0)
    assert found.flipped_groups == 1


def test_ties_share_their_rank():
    found = measure(group("a"), [0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 1.0], highest=(1, 1))
    assert found.rank_correlation == pytest.approx(0.57735, abs=1e-5)


def test_a_version_that_pays_everybody_alike_has_no_ranks():
    found = measure(group("a"), [0.0, 1.0, 0.0, 1.0], [1.0] * 4, highest=(1, 1))
    assert found.rank_correlation is None
    assert (found.signal_old, found.signal_new) == (1, 0)


def test_a_score_that_vanishes_is_drift():
    found = measure(group("a"), [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, None], highest=(1, 1))
    assert (found.changed, found.unscored_new) == (1, 1)


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        ("1.0", "1.1", False),
        ("1.9.9", "2.0", True),
        ("0.1.0", "0.1.1", False),
        ("0.1.0", "0.2.0", True),
        ("0.9", "1.0", True),
        ("1.0", "1.0.post1", False),
    ],
)
def test_a_major_bump_allows_drift(old, new, allowed):
    assert allows_drift(old, new) is allowed


def test_both_kinds_of_files_are_read(tmp_path):
    path = tmp_path / "rollouts.jsonl"
    rows = [
        {"task": "a", "completion": "1"},
        {"task": "a", "completion": "2", "group": "g"},
        {"task": "b", "environment": "sums", "group": "g2", "rollouts": [{"completion": "3"}]},
        {"task": "c", "environment": "others", "group": "g3", "rollouts": [{"completion": "4"}]},
        {"full_at_bytes": 16},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n\n")
    assert read_rollouts(path, "sums") == [
        Stored("a", "a", "1"),
        Stored("g", "a", "2"),
        Stored("g2", "b", "3"),
    ]


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "1", '{"task": 1}', '{"task": "a"}', '{"task": "a", "rollouts": [1]}']
)
def test_a_file_of_something_else_is_refused(tmp_path, text):
    path = tmp_path / "rollouts.jsonl"
    path.write_text(text)
    with pytest.raises(FormatError):
        read_rollouts(path, "sums")


@pytest.mark.integration
def test_the_command_finds_a_grader_that_became_generous(tmp_path):
    old = create(Wish("environment", "letters"), tmp_path / "old")
    new = create(Wish("environment", "letters"), tmp_path / "new")
    module = new / "prime_env_letters/environment.py"
    text = module.read_text()
    assert "float(int(found[1]) == int(task.gold))" in text
    module.write_text(
        text.replace("int(found[1]) == int(task.gold)", "abs(int(found[1]) - int(task.gold)) < 2")
    )
    project = (new / "pyproject.toml").read_text()
    (new / "pyproject.toml").write_text(project.replace('"0.1.0"', '"0.1.1"'))
    rollouts = tmp_path / "rollouts.jsonl"
    rows = [{"task": "boxes", "completion": f"Answer: {number}"} for number in (56, 57, 60, 55)]
    rows += [{"task": "gone", "completion": "Answer: 1"}]
    rollouts.write_text("\n".join(map(json.dumps, rows)))

    def diff(first: Path, second: Path, code: int) -> dict:
        command = [sys.executable, "-m", "prime_core", "diff", str(first), str(second)]
        done = subprocess.run(
            [*command, "--rollouts", str(rollouts), "--json"], capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    found = diff(old, new, 1)
    assert (found["changed"], found["gained"], found["lost"]) == (2, 2, 0)
    assert (found["missing"], found["unknown"]) == ([], ["gone"])
    assert diff(old, old, 0)["drifts"] is False
    (new / "pyproject.toml").write_text(project.replace('"0.1.0"', '"0.2.0"'))
    assert diff(old, new, 0)["allowed"] is True
