"""`prime-core config` and the dry run: what a config says, resolved, explained, compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from prime_core.api import ConfigError
from prime_core.cli.config import config
from prime_core.cli.dry_run import dry_run
from prime_core.cli.main import cli
from prime_core.config.load import load

pytest.importorskip("prime_env_arithmetic", reason="the arithmetic environment isn't installed")

CONFIG = """\
[model]
path = "model"

[trainer]
lr = 2e-6

[[environments]]
use = "arithmetic"
with = { digits = 3 }
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "run.toml"
    file.write_text(CONFIG)
    return file


def run(*arguments: str | Path) -> Result:
    done = CliRunner().invoke(config, [str(argument) for argument in arguments])
    if done.exception is not None and not isinstance(done.exception, ConfigError):
        raise done.exception
    return done


def test_explain_says_value_origin_type_default_and_help(path: Path) -> None:
    assert run("explain", path, "trainer.lr").output.splitlines() == [
        "trainer.lr = 2e-06",
        f"  origin   {path}:5",
        "  type     number, > 0",
        "  default  1e-06",
        "  help     learning rate after warm-up",
    ]


def test_explain_knows_parameters_of_plugins_set_or_not(path: Path) -> None:
    done = run("explain", path, "environments.0.with", "--json")
    found = {each["key"]: each for each in json.loads(done.output)}
    assert found["environments.0.with.digits"]["value"] == "3"
    assert found["environments.0.with.digits"]["origin"] == f"{path}:9"
    assert found["environments.0.with.split"]["value"] == '"train"'
    assert found["environments.0.with.split"]["origin"] == "default"
    assert found["environments.0.with.split"]["help"]


def test_explain_takes_overrides(path: Path) -> None:
    (each,) = json.loads(run("explain", path, "async.max", "--set", "async.max=4", "--json").output)
    assert (each["value"], each["origin"], each["default"]) == ("4", "--set", "unset")


def test_explain_of_a_key_that_isnt_names_the_nearest(path: Path) -> None:
    done = run("explain", path, "trainer.lrr")
    assert isinstance(done.exception, ConfigError)
    assert done.exception.problems[0].fix == "did you mean trainer.lr?"


def test_diff_prints_only_what_differs_with_both_origins(path: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "run.toml").write_text(CONFIG.replace("2e-6", "3e-6") + "weight = 1.0\n")
    assert run("diff", path, other).output.splitlines() == [
        "trainer.lr",
        f"  - 2e-06  ({path}:5)",
        f"  + 3e-06  ({other / 'run.toml'}:5)",
    ]
    assert run("diff", path, path).output == "no difference\n"
    (only,) = json.loads(run("diff", path, other, "--json").output)
    assert only["key"] == "trainer.lr"


def test_schema_is_json_or_the_reference_page() -> None:
    assert json.loads(run("schema").output)["title"] == "prime-core run config"
    assert run("schema", "--markdown").output.startswith("# The run config\n")


def test_errors_print_one_by_one_and_exit_2(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.write_text(CONFIG + "wieght = 1\n[run]\nnmae = 'x'\n")
    done = CliRunner().invoke(cli, ["config", "explain", str(path), "run.name"])
    assert isinstance(done.exception, ConfigError)
    assert str(done.exception).splitlines() == [
        f"2 problems in {path}",
        f"- {path}:10: unknown key environments.0.wieght",
        "  fix: did you mean weight?",
        f"- {path}:12: unknown key run.nmae",
        "  fix: did you mean name?",
    ]


def test_a_dry_run_writes_the_resolved_config_and_estimates(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    (model / "model.safetensors").write_bytes(b"")
    (model / "tokenizer.json").write_text("{}")
    overrides = [f"model.path={model}", f"run.dir={tmp_path / 'run'}", "trainer.steps=3"]
    dry_run(path, overrides)
    text = capsys.readouterr().out
    assert f"lr = 2e-06  # {path}:5" in text
    assert "steps = 3  # --set" in text
    assert "generated tokens per step" in text
    assert "memory and disk: unknown" in text
    dry_run(path, overrides, tmp_path / "resolved.toml")
    assert "# --set" not in capsys.readouterr().out
    assert load(tmp_path / "resolved.toml").config == load(path, overrides).config
    assert not (tmp_path / "run").exists()


def test_a_dry_run_of_a_bad_config_says_all_that_is_wrong(path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        dry_run(path, ["trainer.lr=0", "loss.use=gpro"])
    assert len(caught.value.problems) == 3  # the model's directory, too
