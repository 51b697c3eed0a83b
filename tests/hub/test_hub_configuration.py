"""Parameters, factories and work: the phases after registration."""

from __future__ import annotations

from typing import get_type_hints

import pytest
from pydantic import Field, SecretStr, field_validator

from prime_core.api import (
    DatasetError,
    Params,
    PluginError,
    Score,
    VerifierSpec,
)
from prime_core.config.sections import PluginChoice
from prime_core.hub import Hub, RunContext
from prime_core.hub.kinds import KINDS, members, missing_members
from prime_core.hub.params import parameters


class Inner(Params):
    depth: int = Field(1, description="how deep")


class VerifierParams(Params):
    tolerance: float = Field(0.5, ge=0, description="how far off an answer may be")
    mode: str = "strict"
    inner: Inner = Inner()
    token: SecretStr | None = None
    odd: int = 1

    @field_validator("odd")
    @classmethod
    def _odd(cls, value: int) -> int:
        if value == 13:
            raise RuntimeError("unlucky")
        return value


class Made:
    def __init__(self, params, context):
        self.params, self.context = params, context

    def verify(self, task, completion):
        return Score(1.0)


@pytest.fixture
def context(tmp_path):
    return RunContext(run_dir=None, cache_dir=tmp_path)


@pytest.fixture
def hub(isolated_hub, make_plugin) -> Hub:
    make_plugin(VerifierSpec("exact", Made, "s", VerifierParams), distribution="dist-exact")
    return isolated_hub


def choice(use: str = "exact", **values: object) -> PluginChoice:
    return PluginChoice.model_validate({"use": use, "with": values})


def test_make_gives_validated_parameters_and_the_context(hub, context):
    made = hub.make("verifier", choice(tolerance=0.25), context)
    assert made.params == VerifierParams(tolerance=0.25)
    assert made.context is context


@pytest.mark.parametrize(
    ("values", "said", "fix"),
    [
        ({"tolerence": 1}, "unknown key with.tolerence", "did you mean tolerance"),
        ({"tolerance": -1}, "with.tolerance must be at least 0", "tolerance"),
        ({"tolerance": "x"}, "with.tolerance must be a number", "tolerance"),
        ({"inner": {"dept": 2}}, "with.inner.dept", "depth"),
        ({"odd": 13}, "validating its parameters raised RuntimeError: unlucky", "tolerance"),
    ],
)
def test_bad_parameters_name_the_valid_ones(hub, values, said, fix):
    with pytest.raises(PluginError) as caught:
        hub.params("verifier", choice(**values))
    error = caught.value
    assert error.phase == "configured"
    assert said in error.what
    assert fix in error.fix
    assert "its parameters are tolerance, mode, inner, token, odd" in error.fix
    assert "test_hub_configuration.py" in error.fix
    assert "prime-core plugins show verifier.exact" in error.fix
    assert "dist-exact 1.0" in str(error)


def test_all_problems_come_at_once(hub):
    with pytest.raises(PluginError, match="2 problems") as caught:
        hub.params("verifier", choice(tolerence=1, mode=3))
    assert "tolerence" in caught.value.what
    assert "mode" in caught.value.what


def test_a_plugin_without_parameters_says_so(isolated_hub, make_plugin):
    make_plugin(VerifierSpec("plain", Made, "s"))
    with pytest.raises(PluginError, match=r"verifier\.plain has no parameters"):
        isolated_hub.params("verifier", choice("plain", anything=1))


def test_a_secret_is_read_from_the_environment_and_never_shown(hub, context, monkeypatch):
    monkeypatch.setenv("MY_TOKEN", "hunter2")
    made = hub.make("verifier", choice(token="env:MY_TOKEN"), context)
    assert made.params.token.get_secret_value() == "hunter2"
    with pytest.raises(PluginError) as caught:
        hub.params("verifier", choice(token="hunter2", mode=3))
    assert "hunter2" not in str(caught.value)
    with pytest.raises(PluginError) as caught:
        hub.params("verifier", choice(token="env:MY_TOKEN", mode=3))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("error", "said", "fix"),
    [
        (RuntimeError("no data"), "its factory raised RuntimeError: no data", "doctor"),
        (SystemExit(4), "its factory raised SystemExit: 4", "doctor"),
        (DatasetError("gone", fix="download it"), "gone", "download it"),
    ],
)
def test_what_a_factory_raises_is_the_plugin_s_error(
    isolated_hub, make_plugin, context, error, said, fix
):
    def make(params, context):
        raise error

    make_plugin(VerifierSpec("bad", make, "s"), distribution="dist-bad")
    with pytest.raises(PluginError) as caught:
        isolated_hub.make("verifier", choice("bad"), context)
    assert caught.value.phase == "configured"
    assert caught.value.__cause__ is error
    assert said in caught.value.what
    assert fix in caught.value.fix
    assert "dist-bad 1.0" in str(caught.value)


def test_a_factory_that_makes_half_an_object_is_told_what_lacks(isolated_hub, make_plugin, context):
    make_plugin(VerifierSpec("half", lambda params, context: object(), "s"))
    with pytest.raises(PluginError, match="made a object without verify"):
        isolated_hub.make("verifier", choice("half"), context)


def test_a_factory_may_not_be_interrupted_into_an_error(isolated_hub, make_plugin, context):
    def make(params, context):
        raise KeyboardInterrupt

    make_plugin(VerifierSpec("slow", make, "s"))
    with pytest.raises(KeyboardInterrupt):
        isolated_hub.make("verifier", choice("slow"), context)


def test_what_a_plugin_raises_at_work_names_it(hub):
    with pytest.raises(PluginError) as caught, hub.at_work("verifier", "exact"):
        raise ZeroDivisionError("by zero")
    assert caught.value.phase == "working"
    assert "dist-exact 1.0" in str(caught.value)
    assert "ZeroDivisionError: by zero" in caught.value.what
    assert "prime-core plugins show verifier.exact" in caught.value.fix
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_our_own_errors_pass_at_work(hub):
    with pytest.raises(DatasetError), hub.at_work("verifier", "exact"):
        raise DatasetError("gone")


def test_members_are_looked_at_without_being_called():
    class Costly:
        verifier = "exact"

        @property
        def info(self):
            raise AssertionError("info was called")

        def tasks(self): ...
        def render(self, task, budget): ...

    assert missing_members(Costly(), KINDS["environment"].protocols) == []


def test_a_data_filter_may_be_of_either_kind():
    class Tasks:
        def keep_task(self, task, profile): ...

    protocols = KINDS["data_filter"].protocols
    assert missing_members(Tasks(), protocols) == []
    assert missing_members(object(), protocols) == ["keep_task"]


def test_inherited_members_of_a_protocol_count():
    from prime_core.api import MultiTurnEnvironment

    assert set(members(MultiTurnEnvironment)) == {"info", "verifier", "tasks", "render", "reply"}


def test_parameters_are_described_with_nested_ones():
    found = {each.name: each for each in parameters(VerifierParams)}
    assert list(found)[:4] == ["tolerance", "mode", "inner", "inner.depth"]
    assert found["tolerance"].default == "0.5"
    assert found["inner.depth"].help == "how deep"


def test_no_any_leaks_from_the_facade():
    """What callers get from the hub is typed: `make` has an overload for every kind."""
    from typing import get_overloads

    kinds = set()
    for overload in get_overloads(Hub.make):
        hints = get_type_hints(overload, vars(__import__("prime_core.hub.hub", fromlist=["x"])))
        kinds |= set(getattr(hints["kind"], "__args__", ()))
        assert "Any" not in str(hints["return"])
    assert kinds == {name for name in KINDS if KINDS[name].hook}
