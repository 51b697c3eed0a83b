"""`prime-core plugins list | show | doctor`, in text and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from prime_core.api import Params, VerifierSpec
from prime_core.cli.plugins import plugins
from prime_core.hub import Hub
from prime_core.hub.records import PluginRecord

RECORD_FIELDS = {
    "kind",
    "name",
    "module",
    "distribution",
    "version",
    "api_requirement",
    "summary",
    "location",
    "shadowed",
    "blocked_by",
}
SHOW_FIELDS = {
    "kind",
    "name",
    "summary",
    "distribution",
    "version",
    "module",
    "api",
    "api_requirement",
    "parameters",
    "select",
}
DOCTOR_FIELDS = {
    "kind",
    "name",
    "distribution",
    "version",
    "module",
    "status",
    "phase",
    "cause",
    "fix",
    "command",
    "where",
}
ROOT = Path(__file__).parents[2]


class ShownParams(Params):
    """Parameters of a test's verifier."""

    depth: int = 3
    name: str


def run(*arguments: str, code: int = 0) -> str:
    """The output of a command."""
    done = CliRunner().invoke(plugins, list(arguments), catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.stdout


@pytest.fixture
def fake(make_plugin, isolated_hub, monkeypatch) -> Hub:
    """A hub of one verifier and one observer, which the commands discover."""
    make_plugin(
        VerifierSpec("shown", lambda params, context: None, "what it does", ShownParams),
        distribution="dist-shown",
    )
    make_plugin(
        hooks={"prime_step_finished": lambda step: None}, observer="watch", distribution="dist-w"
    )

    def discover(block=()):
        return Hub(isolated_hub.records(), block)

    monkeypatch.setattr(Hub, "discover", discover)
    return isolated_hub


def test_list_shows_every_plugin_by_kind():
    text = run("list")
    assert "inference_engine\n  openai" in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_list_can_be_of_one_kind():
    found = json.loads(run("list", "--kind", "loss", "--json"))["plugins"]
    assert [each["name"] for each in found] == ["grpo"]
    assert (
        "is not one of environment" in CliRunner().invoke(plugins, ["list", "--kind", "x"]).output
    )


def test_list_json_has_its_documented_fields(fake):
    found = json.loads(run("list", "--json"))["plugins"]
    assert [set(each) for each in found] == [RECORD_FIELDS] * 2


def test_list_imports_nothing(fake):
    fake.add([PluginRecord("verifier", "boom", "a_module_nobody_has", "d", "1", "")])
    assert "boom" in run("list")


def test_list_marks_names_that_are_taken_twice(fake, make_plugin):
    make_plugin(VerifierSpec("shown", lambda params, context: None, "s"), distribution="dist-2")
    assert run("list").count("(name is taken twice)") == 2


def test_show_prints_parameters_with_types_defaults_and_help():
    text = run("show", "environment.arithmetic")
    assert "digits: integer, >= 1, <= 9\n      default 2\n      digits of each operand" in text
    assert "from prime-env-arithmetic" in text
    assert '[[environments]]\n  use = "arithmetic"' in text
    assert all(len(line) <= 80 for line in text.splitlines())


@pytest.mark.parametrize("name", ["shown", "verifier.shown", "shown@dist-shown"])
def test_show_takes_either_name(fake, name):
    shown = json.loads(run("show", name, "--json"))
    assert set(shown) == SHOW_FIELDS
    assert (shown["summary"], shown["distribution"], shown["api"]) == (
        "what it does",
        "dist-shown",
        "1",
    )
    depth, required = shown["parameters"]
    assert depth == {
        "name": "depth",
        "type": "integer",
        "default": "3",
        "required": False,
        "help": "",
    }
    assert required["required"] is True
    assert required["default"] is None


def test_show_knows_observers(fake):
    assert json.loads(run("show", "watch", "--json"))["parameters"] == []
    assert 'observers = ["watch"]' in run("show", "watch")


def test_show_of_several_names_them_all(fake, make_plugin):
    make_plugin(VerifierSpec("shown", lambda params, context: None, "s"), distribution="dist-2")
    from prime_core.api import PluginError

    with pytest.raises(PluginError, match="means 2 plugins") as caught:
        run("show", "shown")
    assert "verifier.shown@dist-2 or verifier.shown@dist-shown" in caught.value.fix or (
        "verifier.shown@dist-shown or verifier.shown@dist-2" in caught.value.fix
    )
    assert "what it does" in run("show", "shown@dist-shown")


def test_show_of_nothing_names_the_nearest(fake):
    from prime_core.api import PluginError

    with pytest.raises(PluginError, match=r"did you mean verifier\.shown\?"):
        run("show", "verifier.shwon")


def test_what_a_plugin_prints_does_not_spoil_the_json(fake, make_plugin):
    spec = VerifierSpec("loud", lambda params, context: None, "s")

    def register():
        print("hello from a plugin")
        return [spec]

    make_plugin(hooks={"prime_verifiers": register}, declares=["verifier.loud"])
    assert json.loads(run("show", "loud", "--json"))["name"] == "loud"


@pytest.mark.integration
def test_doctor_finds_nothing_wrong_with_the_built_ins(monkeypatch):
    only = [r for r in Hub.discover().records() if r.distribution == "prime-core"]
    monkeypatch.setattr(Hub, "discover", lambda block=(): Hub(only, block))
    report = json.loads(run("doctor", "--json"))
    assert report["failed"] == 0, report
    assert {each["status"] for each in report["plugins"]} == {"loaded"}
    assert [set(each) for each in report["plugins"]] == [DOCTOR_FIELDS] * len(only)


@pytest.mark.integration
def test_doctor_exits_1_and_says_what_to_run(fake):
    """In-memory plugins don't exist in the doctor's processes: both fail, with a command."""
    text = run("doctor", code=1)
    assert "failed        verifier.shown (dist-shown 1.0)" in text
    assert "run: " in text
    assert text.endswith("2 plugins, 2 failed\n")


def write_config(folder: Path, plugins_block: str) -> Path:
    path = folder / "run.toml"
    path.write_text(
        '[model]\npath = "nowhere"\n[[environments]]\nuse = "arithmetic"\n' + plugins_block
    )
    return path


@pytest.mark.integration
def test_doctor_with_a_config_tries_what_it_selects(tmp_path, monkeypatch):
    labels = {"environment.arithmetic", "verifier.exact", "reward.task", "loss.grpo"}
    some = [record for record in Hub.discover().records() if record.label in labels]
    monkeypatch.setattr(Hub, "discover", lambda block=(): Hub(some, block))
    path = write_config(tmp_path, '[plugins]\nblock = ["prime-rewards"]\n')
    report = json.loads(run("doctor", "--config", str(path), "--json", code=1))
    found = {(each["kind"], each["name"], each["status"]) for each in report["plugins"]}
    assert ("environment", "arithmetic", "loaded") in found
    assert ("loss", "grpo", "loaded") in found
    assert ("verifier", "exact", "not selected") in found
    assert ("reward", "task", "failed") in found
    reward = next(each for each in report["plugins"] if each["where"] == "reward")
    assert "blocked by 'prime-rewards'" in reward["cause"]


def test_the_json_fields_are_documented():
    text = (ROOT / "docs/reference/plugins.md").read_text()
    for name in RECORD_FIELDS | SHOW_FIELDS | DOCTOR_FIELDS | {"failed", "plugins"}:
        assert f"`{name}`" in text, f"docs/reference/plugins.md doesn't explain {name}"
