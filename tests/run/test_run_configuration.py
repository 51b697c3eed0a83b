"""Plugins of a run config are checked with everything else, and before anything heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from prime_core.api import ConfigError
from prime_core.run import hosted_params
from prime_core.run.configuration import load_run_config

pytest.importorskip("prime_env_arithmetic", reason="the arithmetic environment isn't installed")

CONFIG = """\
[model]
path = "model"

[engine]
with = { batch_size = 4 }

[[environments]]
use = "arithmetic"
with = { digits = 2 }
"""
HEAVY = ("torch", "transformers", "pyarrow", "sympy", "rich", "matplotlib", "prime_env_arithmetic")


def write(directory: Path, text: str = CONFIG) -> Path:
    path = directory / "run.toml"
    path.write_text(text)
    return path


def refusals(path: Path, *overrides: str) -> dict[str, str]:
    """Place -> what and fix."""
    with pytest.raises(ConfigError) as caught:
        load_run_config(path, overrides, check_files=False)
    return {
        (problem.where or "").replace(str(path), "run.toml"): f"{problem.what} | {problem.fix}"
        for problem in caught.value.problems
    }


def test_a_config_with_its_plugins_loads(tmp_path: Path) -> None:
    loaded = load_run_config(write(tmp_path), ["loss.with.delta=3.0"], check_files=False)
    assert ("environments", 0) in loaded.checked
    assert ("loss",) in loaded.checked
    assert ("reward",) in loaded.checked


def test_a_data_set_that_isnt_there_is_refused_and_a_remote_one_isnt_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    (tmp_path / "there.jsonl").touch()
    url = '["there.jsonl", "https://example.org/x.jsonl", "gone.jsonl"]'
    text = CONFIG.replace('"arithmetic"', '"jsonl"').replace("digits = 2", f"url = {url}")
    path = write(tmp_path, text)
    load_run_config(path, check_files=False)
    with pytest.raises(ConfigError) as caught:
        load_run_config(path)
    found = [each for each in caught.value.problems if "gone" in each.what]
    assert [each.what for each in found] == ["there is no file gone.jsonl"]
    assert (found[0].where or "").endswith("run.toml:9")
    assert str(tmp_path) in (found[0].fix or "")
    assert not [each for each in caught.value.problems if "there.jsonl" in each.what]


def test_every_plugin_problem_comes_with_the_others(tmp_path: Path) -> None:
    text = CONFIG.replace("batch_size", "batch_sise").replace("digits = 2", "digits = 20")
    text += '[[filters.online]]\nuse = "nonzero_signals"\n[trainer]\nlr = -1\n'
    found = refusals(
        write(tmp_path, text),
        "reward.use=tusk",
        "loss.with={epsilon = 0.2, delta = 1.1}",
        "environments.0.verifier={use='exactly'}",
        "plugins.observers=['nobody']",
    )
    assert set(found) == {
        "run.toml:5",
        "run.toml:9",
        "run.toml:11",
        "run.toml:13",
        "--set reward.use",
        "--set loss.with",
        "--set environments.0.verifier",
        "--set plugins.observers",
    }
    assert found["run.toml:5"].endswith("did you mean batch_size?")
    assert "environments.0.with.digits must be at most 9, not 20" in found["run.toml:9"]
    assert "nonzero_signal" in found["run.toml:11"]
    assert "tusk" in found["--set reward.use"]
    assert "delta" in found["--set loss.with"]


def test_a_blocked_plugin_is_refused_where_it_is_chosen(tmp_path: Path) -> None:
    found = refusals(write(tmp_path), "plugins.block=['environment.arithmetic']")
    assert "blocked" in found["run.toml:8"]
    found = refusals(write(tmp_path), "plugins.block=['nothing.x@y']")
    assert "names no plugin" in found["--set plugins.block"]


def test_an_environment_of_another_interpreter_is_left_to_its_host(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG + 'python = "elsewhere/python"\n')
    loaded = load_run_config(path, ["environments.0.use=unheard_of"], check_files=False)
    assert ("environments", 0) not in loaded.checked


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("import os\nos._exit(7)\n", "ended with status 7"),
        ("print('noise' * 100000)\nraise SystemExit(0)\n", "raised SystemExit"),
        ("import time\ntime.sleep(60)\n", "didn't finish"),
    ],
)
def test_a_hosted_plugin_that_kills_its_check_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, words: str
) -> None:
    (tmp_path / "prime_core_rogue.py").write_text(body)
    metadata = tmp_path / "prime_core_rogue-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: prime-core-rogue\nVersion: 1\nRequires-Dist: prime-core\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[prime_core]\nenvironment.rogue = prime_core_rogue\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(hosted_params, "TIME_LIMIT_S", 4.0)
    found = refusals(write(tmp_path), "environments.0.use=rogue", "environments.0.with={}")
    assert words in "".join(found.values())


SCRIPT = """
import json, sys
from pathlib import Path
from prime_core.api import ConfigError
from prime_core.run.configuration import load_run_config
try:
    load_run_config(Path(sys.argv[1]), sys.argv[2:])
except ConfigError as error:
    print(json.dumps({"message": str(error), "modules": sorted(sys.modules)}))
"""


def test_a_bad_config_fails_before_any_heavy_import(tmp_path: Path) -> None:
    path = write(tmp_path, CONFIG.replace("[engine]", "[engine]\nworkerz = 2"))
    command = [sys.executable, "-c", SCRIPT, str(path), "loss.use=gpro"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    for words in ("did you mean workers?", "'grpo'", "the model's directory model doesn't exist"):
        assert words in found["message"]
    assert [name for name in HEAVY if name in found["modules"]] == []
