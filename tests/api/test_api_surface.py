"""The surface that plugin authors import, and the values that cross it."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from pydantic import ValidationError

from prime_core import api
from prime_core.api import NoParams, Params, Score, Spec, VerifierSpec, with_instruction
from prime_core.api.types import Instruction, Message
from prime_core.hub.kinds import KINDS


def test_every_exported_name_exists():
    assert sorted(api.__all__) == sorted(set(api.__all__))
    for name in api.__all__:
        assert hasattr(api, name), name


@pytest.mark.parametrize("status", ["scored", "invalid_output"])
def test_a_score_with_a_status_of_value_has_one(status):
    assert Score(0.5, status).value == 0.5
    with pytest.raises(ValueError, match="can't have value None"):
        Score(None, status)


@pytest.mark.parametrize("status", ["abstained", "error"])
def test_a_score_without_value_has_none(status):
    assert Score(None, status).value is None
    with pytest.raises(ValueError, match="can't have value 0"):
        Score(0.0, status)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_a_score_is_finite(value):
    with pytest.raises(ValueError, match="can't be"):
        Score(value)


def test_a_score_has_a_known_status():
    with pytest.raises(ValueError, match="is not one of"):
        Score(1.0, "right")


def test_values_and_specs_are_frozen():
    for value in (Score(1.0), Message("user", "x"), VerifierSpec("v", lambda p, c: None, "s")):
        name = dataclasses.fields(value)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "changed")


def test_every_kind_has_a_spec_of_its_own():
    kinds = {spec.kind for spec in Spec.__subclasses__()}
    assert kinds == {name for name, kind in KINDS.items() if kind.hook}


def test_parameters_refuse_unknown_keys_and_changes():
    class Mine(Params):
        depth: int = 1

    with pytest.raises(ValidationError):
        Mine(deph=2)
    with pytest.raises(ValidationError):
        Mine().depth = 2
    with pytest.raises(ValidationError):
        NoParams(anything=1)


@pytest.mark.parametrize(
    ("prompt", "place", "roles"),
    [
        (["user"], "user", ["user"]),
        (["user"], "system", ["system", "user"]),
        (["system", "user"], "system", ["system", "user"]),
        (["user", "assistant", "user"], "user", ["user", "assistant", "user"]),
        (["system"], "user", ["system", "user"]),
    ],
)
def test_an_instruction_goes_to_its_place(prompt, place, roles):
    messages = [Message(role, role) for role in prompt]
    changed = with_instruction(messages, Instruction("Think.", place))
    assert [message.role for message in changed] == roles
    holders = [message for message in changed if "Think." in message.content]
    assert [message.role for message in holders] == [place]
    assert with_instruction(messages, None) == tuple(messages)


def test_the_api_does_not_import_the_engine():
    code = (
        "import sys, prime_core.api\n"
        "print(*[n for n in sys.modules if n.startswith('prime_core.') "
        "and not n.startswith('prime_core.api')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "", done.stdout
