"""Environments of a whole run: clashing dependencies, hostile verifiers, several turns."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hosting_support import make_interpreter, write_distribution
from integration_support import outcomes, steps_of, submitted, train, write_config
from tokenizers import Tokenizer

from prime_core.store.metrics import read_metrics
from prime_core.store.objects import ObjectStore
from prime_core.store.outcomes import OutcomeLog
from prime_core.store.records import Lock
from prime_core.store.schema import RolloutRow

pytestmark = pytest.mark.integration

# Two versions of one dependency, without a function in common; each says who imports it.
TINYDEP = """
import os
from pathlib import Path

with Path({seen!r}).open("a") as out:
    out.write("{{}} {version} {{}}\\n".format(
        os.getpid(), Path("/proc/self/cmdline").read_bytes().replace(b"\\0", b" ").decode()
    ))


def {function}(text):
    return float(len(text) % 2 == 0)
"""

ENVIRONMENT = """
import tinydep
from prime_core.api import EnvironmentInfo, EnvironmentSpec, Message, Score, Task, hookimpl


class Environment:
    info = EnvironmentInfo("{name}", "0.1", "0" * 64, "Apache-2.0")

    def tasks(self):
        return [Task(f"{name}:{{n}}", (Message("user", f"{{n}}+"),)) for n in range(5)]

    def render(self, task, budget):
        text = task.prompt[0].content + (budget.text if budget else "")
        return [Message("user", text)]

    @property
    def verifier(self):
        return self

    def verify(self, task, completion):
        return Score(tinydep.{function}(completion.text))


@hookimpl
def prime_environments():
    return [EnvironmentSpec("{name}", lambda params, context: Environment(), "Clashes.")]
"""


def clashing(root: Path, name: str, version: str, function: str, seen: Path) -> Path:
    """An interpreter that holds environment `name` and its version of the dependency."""
    tinydep = TINYDEP.format(version=version, function=function, seen=str(seen))
    environment = ENVIRONMENT.format(name=name, function=function)
    entry = f"[prime_core]\nenvironment.{name} = prime_env_{name}\n"
    distributions = {
        "tinydep": (version, "tinydep", tinydep, ""),
        f"prime-env-{name}": ("0.1", f"prime_env_{name}", environment, entry),
    }
    return make_interpreter(root / name, distributions)


ENVIRONMENTS = """
[[environments]]
use = "old"
python = "{old}"

[[environments]]
use = "new"
name = "fresh"
weight = 3.0
python = "{new}"

[[environments]]
use = "arithmetic"
name = "retry"
with = {{ kind = "retry", digits = 1 }}
"""
STEPS = 3


@pytest.fixture(scope="module")
def mixed(tiny_model: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A run of three environments, two of which can't be installed together; its summary."""
    folder = tmp_path_factory.mktemp("mixed")
    old = clashing(folder, "old", "1.0", "count", folder / "seen")
    new = clashing(folder, "new", "2.0", "measure", folder / "seen")
    tables = ENVIRONMENTS.format(old=old, new=new)
    summary = train(write_config(folder, tiny_model, steps=STEPS, environments=tables))
    return folder, summary


def trained_environments(run_dir: Path) -> set[str]:
    """The environments of the groups that the steps' batches hold."""
    closed = [json.loads(file.read_bytes()) for file in run_dir.glob("steps/*/closed.json")]
    taken = {group["group_id"] for each in closed for group in each["groups"]}
    return {row.environment for row in submitted(run_dir) if row.group_id in taken}


def test_clashing_environments_serve_one_run(mixed: tuple[Path, Any]) -> None:
    folder, summary = mixed
    groups = Counter(row.environment for row in submitted(folder / "run"))
    assert groups.keys() == {"old", "fresh", "retry"}
    assert groups["fresh"] > max(groups["old"], groups["retry"])  # weight 3 to 1
    trained = trained_environments(folder / "run")
    assert {"old", "fresh"} <= trained  # a group of equal rewards trains nothing
    told = {key.removeprefix("reward/env/") for each in steps_of(folder / "run") for key in each
            if key.startswith("reward/env/")}  # fmt: skip
    assert told == trained
    assert outcomes(folder / "run")["total"]["outcomes"]["trained"] == STEPS * 6 * 4
    assert summary["restarts"] == 0


def test_no_process_of_the_run_imports_their_dependencies(mixed: tuple[Path, Any]) -> None:
    folder, _ = mixed
    seen = [line.split(" ", 2) for line in (folder / "seen").read_text().splitlines()]
    assert {version for _, version, _ in seen} == {"1.0", "2.0"}
    for _, version, command in seen:
        name = "old" if version == "1.0" else "new"
        assert command.startswith(f"{folder / name}/bin/python"), command
        assert "prime_core.hosting" in command, command
    roles = {path.stem: path.read_text().strip() for path in (folder / "run/locks").iterdir()}
    assert roles.keys() == {"supervisor", "preparation", "trainer", "intake", "worker-0"}
    assert not set(roles.values()) & {pid for pid, _, _ in seen}


def test_the_lock_says_what_each_interpreter_holds(mixed: tuple[Path, Any]) -> None:
    folder, _ = mixed
    lock = Lock.from_json((folder / "run/lock.json").read_bytes())
    assert lock.distributions["old"]["tinydep"] == "1.0"
    assert lock.distributions["fresh"]["tinydep"] == "2.0"
    assert "tinydep" not in lock.distributions["retry"]
    assert lock.distributions["retry"]["prime-env-arithmetic"]
    assert {plugin.name for plugin in lock.plugins if plugin.kind == "environment"} == {
        "arithmetic"
    }


def test_two_turns_are_trained_with_the_environment_masked(mixed: tuple[Path, Any]) -> None:
    folder, _ = mixed
    rows = [row for row in submitted(folder / "run") if row.environment == "retry"]
    several = [row for row in rows if len(row.turn_ends) == 2]
    assert several, "no rollout had two turns: the test proves nothing"
    words = Tokenizer.from_file(str(folder / "run/model/tokenizer.json"))
    for row in several:
        assert row.completion_mask[0]
        assert row.completion_mask[-1]
        spoken = [
            token
            for token, mine in zip(row.completion_tokens, row.completion_mask, strict=True)
            if not mine
        ]
        question = row.task_id.removeprefix("retry:") + "="
        assert words.decode(spoken).strip() == question
        assert row.length == len(row.completion_tokens) - len(spoken) <= row.max_tokens
    by_group: Counter[str] = Counter()
    for row in submitted(folder / "run"):
        by_group[row.group_id] += row.length
    for record in steps_of(folder / "run"):
        closed = json.loads((folder / f"run/steps/{record['step']:06d}/closed.json").read_bytes())
        ids = [entry["group_id"] for entry in closed["groups"]]
        assert record["tokens/trained"] == sum(by_group[group_id] for group_id in ids)
        # Were a position or a mask wrong, trainer and engine wouldn't agree on these tokens.
        assert record["mismatch/kl"] < 1e-9


# --- a verifier that hangs, crashes and lies -----------------------------------------------------

HOSTILE = """
import hashlib
import os
import time

from prime_core.api import EnvironmentInfo, EnvironmentSpec, Message, Score, Task, hookimpl


def act(text):
    return hashlib.sha256(text.encode()).digest()[0] % 8


def forged(value):
    score = object.__new__(Score)
    for name, found in (
        ("value", value), ("status", "scored"), ("parts", {}), ("evidence", {})
    ):
        object.__setattr__(score, name, found)
    return score


class Environment:
    info = EnvironmentInfo("grumpy", "0.1", "0" * 64, "Apache-2.0")

    def tasks(self):
        return [Task(f"t{n}", (Message("user", f"{n}+"),)) for n in range(9)]

    def render(self, task, budget):
        return task.prompt

    @property
    def verifier(self):
        return self

    def verify(self, task, completion):
        what = act(completion.text)
        if what == 0:
            time.sleep(600)
        if what == 1:
            os._exit(0)
        if what == 2:
            return forged(float("nan"))
        return Score(float(what % 2))


@hookimpl
def prime_environments():
    return [EnvironmentSpec("grumpy", lambda params, context: Environment(), "Hostile.")]
"""


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of distributions that the run's processes find."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))
    return tmp_path / "site"


def expected(row: RolloutRow, words: Tokenizer) -> float | None:
    """The score that the hostile verifier should have given; None where it gave none."""
    text = words.decode(row.completion_tokens, skip_special_tokens=True)
    what = hashlib.sha256(text.encode()).digest()[0] % 8
    return None if what <= 2 else float(what % 2)


def test_a_hostile_verifier_costs_its_own_rollouts_and_nothing_else(
    tiny_model: Path, tmp_path: Path, on_path: Path
) -> None:
    entry = "[prime_core]\nenvironment.grumpy = prime_env_grumpy\n"
    write_distribution(on_path, "prime-env-grumpy", {"prime_env_grumpy": HOSTILE}, entry)
    config = write_config(
        tmp_path, tiny_model, steps=1, environments='[[environments]]\nuse = "grumpy"\n'
    )
    config.write_text(re.sub(r"time_limit_s = 60", "time_limit_s = 1", config.read_text()))
    train(config, "--set", "trainer.groups_per_step=4")
    run_dir = tmp_path / "run"
    words = Tokenizer.from_file(str(run_dir / "model/tokenizer.json"))
    rows = submitted(run_dir)
    for row in rows:
        score = expected(row, words)
        assert row.score == score, "a grader that failed is neither right nor wrong"
        assert row.score_status == ("error" if score is None else "scored")
        assert (row.reward is None) == (score is None)
    bad = {(row.group_id, row.sample) for row in rows if row.score is None}
    errors = {
        (row.group_id, row.sample)
        for row in OutcomeLog(ObjectStore(str(run_dir))).read()
        if (row.outcome, row.detail) == ("unscored", "error")
    }
    assert errors == bad
    assert outcomes(run_dir)["total"]["in_flight"] == 0
    last = [r for r in read_metrics(run_dir) if r["process"] == "worker-0"][-1]
    counts = {name: last[f"host/grumpy/{name}"] for name in ("timeouts", "crashes", "retries")}
    assert all(count > 0 for count in counts.values()), counts
    assert last["host/grumpy/errors_value"] > 0, last
