"""Notification hooks: what observers are told, and that their failures never reach the run."""

from __future__ import annotations

import logging

import pytest

from prime_core.api import PluginError, VerifierSpec
from prime_core.config.sections import RunConfig


def test_observers_hear_every_notification_in_order(isolated_hub, make_plugin):
    heard = []
    make_plugin(
        hooks={
            "prime_run_started": lambda config: heard.append(("run", config)),
            "prime_group_finished": lambda group: heard.append(("group", group)),
            "prime_step_finished": lambda step, metrics: heard.append(("step", step, metrics)),
        },
        observer="first",
    )
    make_plugin(hooks={"prime_step_finished": lambda step: heard.append(step)}, observer="second")
    isolated_hub.load_observers(["first", "second"])
    isolated_hub.run_started({"a": 1})
    isolated_hub.group_finished("the group")
    isolated_hub.step_finished(3, {"loss": 0.5})
    assert heard == [
        ("run", {"a": 1}),
        ("group", "the group"),
        ("step", 3, {"loss": 0.5}),
        3,
    ]


def test_observers_of_a_process_hear_first_where_the_run_lies(isolated_hub, make_plugin):
    heard = []
    make_plugin(hooks={"prime_run_started": lambda config: heard.append(config)}, observer="first")
    make_plugin(hooks={"prime_step_finished": lambda step: heard.append(step)}, observer="second")
    sections = {"model": {"path": "m"}, "environments": [{"use": "e"}], "run": {"dir": "there"}}
    config = RunConfig.model_validate({**sections, "plugins": {"observers": ["first", "second"]}})
    isolated_hub.start_observers(config)
    isolated_hub.step_finished(0, {})
    assert heard[0]["run"]["dir"] == "there"
    assert "async" in heard[0], "keys are those of the file"
    assert heard[1:] == [0]


def test_an_observer_that_is_not_selected_hears_nothing(isolated_hub, make_plugin):
    heard = []
    hooks = {"prime_step_finished": lambda step: heard.append(step)}
    make_plugin(VerifierSpec("v", lambda params, context: None, "s"), hooks=hooks, observer="quiet")
    isolated_hub.spec("verifier", "v")  # loads its module for another reason
    isolated_hub.step_finished(1, {})
    assert heard == []
    isolated_hub.load_observers(["quiet", "quiet"])
    isolated_hub.step_finished(2, {})
    assert heard == [2]


@pytest.mark.parametrize("error", [RuntimeError("boom"), SystemExit(1)])
def test_what_an_observer_raises_is_logged_and_counted(isolated_hub, make_plugin, caplog, error):
    heard = []

    def fail(step):
        raise error

    make_plugin(hooks={"prime_step_finished": fail}, observer="bad", distribution="dist-bad")
    make_plugin(hooks={"prime_step_finished": lambda step: heard.append(step)}, observer="good")
    isolated_hub.load_observers(["bad", "good"])
    with caplog.at_level(logging.ERROR):
        for step in range(3):
            assert isolated_hub.notify("prime_step_finished", step=step, metrics={}) == 1
    assert heard == [0, 1, 2]
    assert isolated_hub.observer_failures == {"dist-bad": 3}
    assert "dist-bad" in caplog.text
    assert type(error).__name__ in caplog.text


def test_a_misspelt_observer_stops_the_run(isolated_hub, make_plugin):
    make_plugin(hooks={"prime_step_finished": lambda step: None}, observer="printer")
    with pytest.raises(PluginError, match="no observer is called 'pinter'") as caught:
        isolated_hub.load_observers(["pinter"])
    assert "'printer'" in caught.value.fix


def test_an_observer_without_a_hook_is_refused(isolated_hub, make_plugin):
    make_plugin(observer="deaf")
    with pytest.raises(PluginError, match="implements no notification hook"):
        isolated_hub.load_observers(["deaf"])


def test_a_module_is_one_observer(isolated_hub, make_plugin):
    hooks = {"prime_step_finished": lambda step: None}
    make_plugin(hooks=hooks, declares=["observer.a", "observer.b"])
    with pytest.raises(PluginError, match="a module is one observer"):
        isolated_hub.load_observers(["a"])


def test_an_async_observer_is_refused(isolated_hub, make_plugin):
    async def step_finished(step):
        raise AssertionError("nobody awaits it")

    make_plugin(hooks={"prime_step_finished": step_finished}, observer="a")
    with pytest.raises(PluginError, match="prime_step_finished is async"):
        isolated_hub.load_observers(["a"])


def test_an_unknown_notification_is_the_programmer_s_mistake(isolated_hub):
    with pytest.raises(AssertionError):
        isolated_hub.notify("prime_steps_finished", step=1)
