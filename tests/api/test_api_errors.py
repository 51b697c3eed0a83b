"""What an error says, and where a reader finds it."""

from __future__ import annotations

import pytest

from prime_core.api import ConfigError, HostError, PluginError, PrimeError
from prime_core.api import errors as tree


def test_an_error_says_what_where_and_what_to_do():
    error = PrimeError("it broke", where="run.toml:3", fix="mend it")
    assert str(error) == "run.toml:3: it broke\n  fix: mend it"
    assert str(PrimeError("it broke")) == "it broke"


def test_a_plugin_error_names_plugin_distribution_and_phase():
    error = PluginError(
        "no luck", plugin="loss.grpo", distribution="prime-core 0.1", phase="imported"
    )
    assert str(error) == "plugin loss.grpo (prime-core 0.1), imported: no luck"
    assert (error.plugin, error.phase) == ("loss.grpo", "imported")


def test_a_config_error_holds_every_problem():
    problems = [PrimeError("a", where="f:1"), PrimeError("b", where="f:2", fix="c")]
    error = ConfigError(problems, source="run.toml")
    assert str(error) == "2 problems in run.toml\n- f:1: a\n- f:2: b\n  fix: c"
    assert str(ConfigError(problems[:1])).startswith("1 problem in")


def test_a_host_error_has_a_kind():
    assert HostError("hung", kind="timeout").kind == "timeout"


@pytest.mark.parametrize(
    "name", [name for name, value in vars(tree).items() if isinstance(value, type)]
)
def test_every_error_is_one_of_ours(name):
    assert issubclass(getattr(tree, name), PrimeError) or name == "Sequence"
    assert getattr(tree, name).__doc__
