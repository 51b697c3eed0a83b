"""Everything that is wrong with a run config comes at once, each with its line and its fix."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from prime_core.api import ConfigError, PrimeError
from prime_core.config.document import Origin, read
from prime_core.config.load import LoadedConfig, load
from prime_core.config.params import PluginReport
from prime_core.config.problems import Fault

MINIMAL = """\
[model]
path = "model"
[[environments]]
use = "arithmetic"
"""


def write(directory: Path, text: str = MINIMAL) -> Path:
    path = directory / "run.toml"
    path.write_text(text)
    return path


def problems(path: Path, *overrides: str, check_files: bool = False) -> dict[str, PrimeError]:
    """The problems by place, the directory left out."""
    with pytest.raises(ConfigError) as caught:
        load(path, overrides, check_files=check_files)
    assert all(problem.fix for problem in caught.value.problems)
    return {
        (problem.where or "").replace(str(path.parent) + "/", ""): problem
        for problem in caught.value.problems
    }


def quick(directory: Path, text: str = MINIMAL, *overrides: str) -> LoadedConfig:
    return load(write(directory, text), overrides, check_files=False)


def test_a_minimal_config_loads_with_the_origin_of_every_value(tmp_path: Path) -> None:
    loaded = quick(tmp_path, MINIMAL + "weight = 2\n", "trainer.lr=1e-5")
    path = str(tmp_path / "run.toml")
    assert loaded.config.environments[0].weight == 2.0
    assert loaded.origins["environments.0.weight"] == Origin("file", path, 5)
    assert loaded.origins["trainer.lr"] == Origin("set")
    assert str(loaded.origins["trainer.lr"]) == "--set"
    assert str(loaded.origins["trainer.steps"]) == "default"
    assert str(loaded.origins["model.path"]) == f"{path}:2"
    assert loaded.source == tmp_path / "run.toml"


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        """\
[run]
nme = "x"
[engine]
max_tokens = "ten"
top_p = 0.9
[async]
level = 3
max = 2
[trainer]
lr = -1
steps = 2.0
aggregation = "x"
optimizer_steps = 3
[loss]
aggregation = "token_meen"
[[environments]]
use = "a"
wieght = 3
[[environments]]
name = "b"
[[environments]]
use = "a"
[zzz]
""",
    )
    found = problems(path, "trainer.group_size=1", "bad", "environments.9.weight=1")
    assert {place: problem.fix for place, problem in found.items()} == {
        "run.toml": "add model = ...: the model that version 0 is made from",
        "run.toml:2": "did you mean name?",
        "run.toml:4": "use integer, > 0 (default 256): token limit of one completion",
        "run.toml:5": "remove top_p",
        "run.toml:8": "raise max to 3 or lower level to 2",
        "run.toml:10": "use number, > 0 (default 1e-06): learning rate after warm-up",
        "run.toml:11": "use integer, > 0, <= 1000000000 (default 100): rollout steps of the run",
        "run.toml:12": "aggregation belongs to [loss]",
        "run.toml:13": "set trainer.groups_per_step to 18, or trainer.optimizer_steps to a "
        "divisor of 16",
        "run.toml:15": 'did you mean "token_mean"?',
        "run.toml:18": "did you mean weight?",
        "run.toml:19": "add use = ...: name of the plugin",
        "run.toml:22": 'give this one a name of its own, e.g. name = "a-2"',
        "run.toml:23": found["run.toml:23"].fix,
        "--set bad": found["--set bad"].fix,
        "--set environments.9.weight": "use an index from 0 to 3; 3 appends",
        "--set trainer.group_size": "use integer, >= 2 (default 8): rollouts of one task (G)",
    }
    assert str(found["run.toml:23"].fix).startswith("remove it; valid keys of a run config: run,")


def test_problems_come_in_the_order_of_the_lines(tmp_path: Path) -> None:
    path = write(tmp_path, "[run]\nb = 1\na = 2\n" + MINIMAL + "zz = 1\n")
    assert list(problems(path, "run.c=1")) == [
        "run.toml:2",
        "run.toml:3",
        "run.toml:8",
        "--set run.c",
    ]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[run]\nname = x\n", 2, "invalid value"),
        ("[run\n", 1, "expected"),
        ("[run]\na = [1,\n\n", 3, ""),
        ("[run]\nname = 'a'\nname = 'b'\n", 3, "overwrite"),
    ],
)
def test_a_syntax_error_names_its_line(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert problem.where in (f"{path}:{line}", f"{path}:{line + 1}")
    assert words in problem.what


@pytest.mark.parametrize("named", ["rum.toml", "."])
def test_a_missing_file_names_one_that_exists(tmp_path: Path, named: str) -> None:
    write(tmp_path)
    with pytest.raises(ConfigError) as caught:
        load(tmp_path / named)
    assert caught.value.problems[0].fix == f"name a file that exists, e.g. {tmp_path / 'run.toml'}"


def test_bytes_that_are_no_text_are_a_config_error(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_bytes(b"[run]\nname = '\xff'\n")
    with pytest.raises(ConfigError, match=r"run\.toml:2: the run config isn't UTF-8"):
        load(tmp_path / "run.toml")


def test_a_byte_order_mark_and_windows_line_ends_are_read(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_bytes(b"\xef\xbb\xbf" + MINIMAL.replace("\n", "\r\n").encode())
    assert load(path, check_files=False).origins["model.path"].line == 2


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ('"3"', "use integer"),
        ("3.0", "use integer"),
        ("true", "use integer"),
        ("[3]", "use integer"),
    ],
)
def test_types_are_never_converted(tmp_path: Path, value: str, fix: str) -> None:
    path = write(tmp_path, f"{MINIMAL}[trainer]\nsteps = {value}\n")
    assert str(problems(path)["run.toml:6"].fix).startswith(fix)


def test_names_of_python_are_no_keys_of_a_file(tmp_path: Path) -> None:
    path = write(tmp_path, f"{MINIMAL}params = {{}}\n[async_]\nlevel = 1\n")
    assert set(problems(path)) == {"run.toml:5", "run.toml:6"}


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ('[model]\npath = "m"\n[environments]\nuse = "a"\n', "[[environments]]"),
        (f"trainer = 3\n{MINIMAL}", "write [trainer]"),
        (f"{MINIMAL}[trainer]\nlearning_rat = 1\n", "did you mean lr?"),
        (f"{MINIMAL}[run]\nname = 3\n", "put the value in quotes"),
        (f"{MINIMAL}[run]\nname = '../x'\n", "use letters, digits"),
        (f"{MINIMAL}[trainer]\nlr = inf\n", "use number"),
        (f"{MINIMAL}[trainer]\nbetas = [0.9, 1.0]\n", "default [0.9, 0.99]"),
        (f"{MINIMAL}[trainer]\nbetas = [0.9]\n", "default [0.9, 0.99]"),
    ],
)
def test_frequent_mistakes_have_a_fix_of_their_own(tmp_path: Path, text: str, fix: str) -> None:
    (problem,) = problems(write(tmp_path, text)).values()
    assert fix in str(problem.fix)


@pytest.mark.parametrize(
    ("override", "key", "value"),
    [
        ("trainer.lr=1e-6", ("trainer", "lr"), 1e-6),
        ("environments.0.weight=2", ("environments", 0, "weight"), 2),
        ("engine.with.batch_size=16", ("engine", "with", "batch_size"), 16),
        ("environments.1.use=b", ("environments", 1, "use"), "b"),
        ("trackers.0.use=wandb", ("trackers", 0, "use"), "wandb"),
        ('run.name="3"', ("run", "name"), "3"),
        ("run.name=a b=c", ("run", "name"), "a b=c"),
        ("run.name=1\nx = 2", ("run", "name"), "1\nx = 2"),
        ("plugins.block=['x', 'y']", ("plugins", "block"), ["x", "y"]),
        ("loss.with={delta = 3}", ("loss", "with"), {"delta": 3}),
    ],
)
def test_overrides_reach_their_place(
    tmp_path: Path, override: str, key: tuple[str | int, ...], value: object
) -> None:
    document = read(write(tmp_path), [override])
    node: object = document.data
    for part in key:
        node = node[part]  # type: ignore[index]
    assert node == value
    assert document.origin(key) == Origin("set")
    assert not document.problems


def test_a_value_is_not_a_table(tmp_path: Path) -> None:
    found = problems(write(tmp_path), "model.path.x=1", "environments.x=1")
    assert found["--set model.path.x"].fix == "set model.path itself"
    assert found["--set environments.x"].what == "environments has 1 elements and no place x"


def test_plugin_faults_are_reported_beside_the_others(tmp_path: Path) -> None:
    path = write(tmp_path, MINIMAL + "with = { digitz = 2 }\n[run]\nseed = -1\n")
    report = PluginReport(("environments", 0), (Fault(("with", "digitz"), "what", "fix"),), True)
    with pytest.raises(ConfigError) as caught:
        load(path, plugin_checker=lambda config: [report], check_files=False)
    assert [p.where for p in caught.value.problems] == [f"{path}:5", f"{path}:7"]


def test_plugins_are_checked_although_a_required_key_is_missing(tmp_path: Path) -> None:
    seen = []
    path = write(tmp_path, '[[environments]]\nuse = "a"\n[[environments]]\nweight = 0\n')
    with pytest.raises(ConfigError):
        load(path, plugin_checker=lambda config: seen.append(config) or [])
    assert [choice.use for choice in seen[0].environments] == ["a", "unknown"]


def test_findings_about_replaced_values_are_dropped(tmp_path: Path) -> None:
    path = write(tmp_path, "[model]\npath = 3\n[[environments]]\nweight = 1\n")
    found = problems(path, check_files=True)
    assert set(found) == {"run.toml:2", "run.toml:3"}  # and not: model "unknown" doesn't exist


def model(directory: Path, **settings: object) -> Path:
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(settings))
    (directory / "model.safetensors").write_bytes(b"")
    (directory / "tokenizer.json").write_text("{}")
    return directory


def test_a_config_whose_files_exist_loads(tmp_path: Path) -> None:
    place = model(tmp_path / "model", max_position_embeddings=1280)
    loaded = load(write(tmp_path), [f"model.path={place}", f"run.dir={tmp_path / 'new'}"])
    assert loaded.config.model.path == str(place)


def test_missing_files_are_named_with_a_fix(tmp_path: Path) -> None:
    model(tmp_path / "model-1", max_position_embeddings=1279)
    path = write(tmp_path, MINIMAL + 'python = "nowhere/python"\n[filters]\nprofiles = "none"\n')
    found = problems(path, f"model.path={tmp_path / 'model1'}", check_files=True)
    assert f'did you mean "{tmp_path / "model-1"}"?' == found["--set model.path"].fix
    assert "prime-core env create arithmetic" in str(found["run.toml:5"].fix)
    assert "prime-core profile" in str(found["run.toml:7"].fix)
    found = problems(path, f"model.path={tmp_path / 'model-1'}", check_files=True)
    assert "the model has 1279 positions" in found["--set model.path"].what


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("model.path=package:not_a_package_at_all", "isn't installed"),
        ("model.path=package:a.b", "can't name a package"),
        ("model.path=Org/Model", "doesn't exist"),
        ("run.dir=FILE/run", "FILE is a file"),
    ],
)
def test_places_that_cant_work(tmp_path: Path, override: str, what: str) -> None:
    (tmp_path / "FILE").write_text("")
    override = override.replace("FILE", str(tmp_path / "FILE"))
    found = problems(write(tmp_path), override, check_files=True)
    problem = found[f"--set {override.split('=')[0]}".replace(str(tmp_path) + "/", "")]
    assert what in problem.what.replace(str(tmp_path) + "/", "")


def test_an_empty_model_directory_lacks_everything(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    found = problems(write(tmp_path), f"model.path={tmp_path / 'empty'}", check_files=True)
    assert "no config.json" in found["--set model.path"].what
    (tmp_path / "empty" / "x.gguf").write_bytes(b"")
    found = problems(write(tmp_path), f"model.path={tmp_path / 'empty'}", check_files=True)
    assert found["--set model.path"].fix == 'set model.gguf = "x.gguf"'


def test_absolute_paths_depend_on_no_directory(tmp_path: Path) -> None:
    loaded = quick(tmp_path, MINIMAL + 'python = "env/bin/python"\n').absolute()
    assert loaded.config.run.dir.is_absolute()
    assert Path(loaded.config.model.path).is_absolute()
    assert loaded.config.environments[0].python == Path.cwd() / "env/bin/python"
    again = quick(tmp_path, MINIMAL, "model.path=package:llm_x").absolute()
    assert again.config.model.path == "package:llm_x"


def test_a_file_nested_too_deep_is_refused_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(ConfigError, match="nested too deep"):
        load(path)
