"""A secret never stands in a config, a message or a resolved config (invariant 10)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, SecretStr, field_validator

from prime_core.api import ConfigError
from prime_core.config.load import load
from prime_core.config.params import PluginReport, check_params
from prime_core.config.resolved import render_resolved
from prime_core.config.secrets import resolve, secret_paths, telltale_secrets
from prime_core.config.sections import PluginChoice, RunConfig

SECRET = "hunter2-hunter2"


class Inner(BaseModel):
    model_config = ConfigDict(extra="forbid")
    login: str = ""
    pin: SecretStr | None = None


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid")
    plain: int = 1
    word: SecretStr = SecretStr("")
    many: list[SecretStr] = []
    inner: Inner = Inner()
    inners: list[Inner] = []

    @field_validator("word")
    @classmethod
    def _long_enough(cls, value: SecretStr) -> SecretStr:
        if len(value.get_secret_value()) == 3:
            raise ValueError(f"too short: {value}")
        return value


VALUES = {
    "word": SECRET,
    "many": ["env:OK", SECRET],
    "inner": {"login": "me", "pin": SECRET},
    "inners": [{"pin": "env:OK"}, {"pin": SECRET}],
}


def test_secret_parameters_are_found_wherever_they_are() -> None:
    assert set(secret_paths(Model, VALUES)) == {
        ("word",),
        ("many",),
        ("inner", "pin"),
        ("inners", 0, "pin"),
        ("inners", 1, "pin"),
    }


def test_literal_secrets_are_refused_and_not_shown() -> None:
    faults = check_params(Model, VALUES, ("trackers", 0, "with"))
    assert [fault.loc for fault in faults] == [
        ("with", "word"),
        ("with", "many"),
        ("with", "inner", "pin"),
        ("with", "inners", 1, "pin"),
    ]
    assert faults[0].fix == ('export it in an environment variable and write word = "env:WORD"')
    assert SECRET not in repr(faults)


def test_a_reference_needs_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRIME_TEST_WORD", raising=False)
    values = {"word": "env:PRIME_TEST_WORD"}
    (fault,) = check_params(Model, values, ())
    assert "PRIME_TEST_WORD, which isn't set" in fault.what
    monkeypatch.setenv("PRIME_TEST_WORD", SECRET)
    assert check_params(Model, values, ()) == ()
    assert resolve(Model, values) == {"word": SECRET}
    assert resolve(Model, {"inner": {"login": "env:PRIME_TEST_WORD"}}) == {
        "inner": {"login": "env:PRIME_TEST_WORD"}
    }


def test_a_validator_that_refuses_a_secret_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRIME_TEST_WORD", "abc")
    (fault,) = check_params(Model, {"word": "env:PRIME_TEST_WORD"}, ("x",))
    assert "abc" not in repr(fault)
    (fault,) = check_params(Model, {"word": 3, "plain": 2}, ("x",))
    assert "is a secret" in fault.what


def test_names_tell_where_no_model_does() -> None:
    names = ["api_key", "apikey", "hf_token", "token", "password", "client_secret", "private-key"]
    assert len(telltale_secrets(dict.fromkeys(names, SECRET))) == len(names)
    assert telltale_secrets(dict.fromkeys(names, "env:X")) == []
    assert telltale_secrets({"answer_key": "a", "eos_token": "b", "tokens": "c", "key": "d"}) == []
    assert telltale_secrets({"a": [{"b": {"password": SECRET}}]})[0].loc == (
        "a",
        0,
        "b",
        "password",
    )


def test_no_message_and_no_resolved_config_holds_a_secret(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text('[model]\npath = "m"\n[[environments]]\nuse = "a"\n')
    choice = f"trackers.0={{use='t', with={{word='{SECRET}', api_key='{SECRET}'}}}}"

    def checker(config: RunConfig) -> list[PluginReport]:
        place = ("trackers", 0)
        faults = check_params(Model, config.trackers[0].params, (*place, "with"))
        return [PluginReport(place, faults, True)]

    for found in (checker, None):
        with pytest.raises(ConfigError) as caught:
            load(path, [choice, f"bad {SECRET}"], plugin_checker=found, check_files=False)
        assert "is a secret" in str(caught.value)
        assert str(caught.value).count(SECRET) == 1  # of the text that is no KEY=VALUE
    loaded = load(path, check_files=False)
    tracker = PluginChoice.model_validate({"use": "t", "with": {"api_key": SECRET}})
    leaky = replace(loaded, config=loaded.config.model_copy(update={"trackers": [tracker]}))
    with pytest.raises(ConfigError) as caught:
        render_resolved(leaky)
    assert SECRET not in str(caught.value)
