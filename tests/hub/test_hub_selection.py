"""Which plugins a run config selects, and the check before anything heavy."""

from __future__ import annotations

from pathlib import Path

import pytest

from prime_core.api import LossSpec, VerifierSpec
from prime_core.config.sections import RunConfig
from prime_core.hub import check_selections, selections

CONFIG = {
    "model": {"path": "m"},
    "engine": {"use": "eng"},
    "environments": [
        {"use": "a", "verifier": {"use": "v"}},
        {"use": "b", "python": "/other/python"},
    ],
    "eval": {"environments": [{"use": "held", "name": "held-out"}]},
    "length_budget": {"use": "lb"},
    "filters": {"offline": [{"use": "f1"}], "online": [{"use": "f2"}]},
    "trackers": [{"use": "t"}],
    "plugins": {"observers": ["o"]},
}


@pytest.fixture
def selected():
    return selections(RunConfig.model_validate(CONFIG))


def test_every_choice_of_a_config_is_selected(selected):
    found = [(each.kind, each.choice.use, each.where) for each in selected]
    assert found == [
        ("inference_engine", "eng", "engine"),
        ("loss", "grpo", "loss"),
        ("advantage", "group_norm", "advantage"),
        ("environment", "a", "environments.0"),
        ("verifier", "v", "environments.0.verifier"),
        ("environment", "b", "environments.1"),
        ("environment", "held", "eval.environments.0"),
        ("reward", "task", "reward"),
        ("reward", "task", "reward"),
        ("length_budget", "lb", "length_budget"),
        ("data_filter", "f1", "filters.offline.0"),
        ("data_filter", "f2", "filters.online.0"),
        ("tracker", "t", "trackers.0"),
        ("observer", "o", "plugins.observers.0"),
    ]


def test_environments_keep_their_interpreter(selected):
    pythons = [each.python for each in selected if each.kind in ("environment", "reward")]
    assert pythons == [None, Path("/other/python"), None, None, Path("/other/python")]


def test_the_check_finds_everything_and_imports_no_hosted_plugin(
    isolated_hub, make_plugin, selected
):
    def refuse():
        raise AssertionError("a verifier belongs to its host")

    make_plugin(hooks={"prime_verifiers": refuse}, declares=["verifier.v"])
    make_plugin(LossSpec("grpo", lambda params, context: None, "s"))
    errors = check_selections(isolated_hub, selected)
    missing = [error.plugin for error in errors]
    assert "verifier.v" not in missing
    assert "loss.grpo" not in missing
    assert "environment.b" not in missing, "another interpreter's plugins are its own business"
    assert missing == [
        "inference_engine.eng",
        "advantage.group_norm",
        "environment.a",
        "environment.held",
        "reward.task",
        "length_budget.lb",
        "data_filter.f1",
        "data_filter.f2",
        "tracker.t",
        "observer.o",
    ]


def test_the_check_validates_parameters(isolated_hub, make_plugin):
    config = {**CONFIG, "loss": {"use": "grpo", "with": {"epsilom": 1}}}
    make_plugin(
        LossSpec("grpo", lambda params, context: None, "s"),
        VerifierSpec("v", lambda params, context: None, "s"),
    )
    errors = check_selections(isolated_hub, selections(RunConfig.model_validate(config)))
    assert any("epsilom" in error.what for error in errors)
