"""Public schemas become problems, or an error that says why not."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import pickle
import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_code import ProblemError, read_problem
from prime_verifier_code.schemas import packed_tests
from prime_verifier_code.schemas.packed_tests import unpack_tests
from prime_verifier_code.text_rules import TextRules


def packed(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def test_genesys() -> None:
    call = {"type": "function_call", "fn_name": "f", "input": [[3, 2]], "output": 3}
    problem = read_problem({"language": "python", "test_cases": [call, call]})
    assert (problem.type, problem.fn_name, len(problem.tests)) == ("function", "f", 2)
    program = {"type": "stdin_stdout", "input": "1\n", "output": "2\n"}
    assert read_problem({"test_cases": [program]}).type == "stdin"


def test_livecodebench_takes_public_and_packed_private_tests() -> None:
    public = json.dumps([{"input": "1\n", "output": "2\n", "testtype": "stdin"}])
    private = packed(json.dumps([{"input": "3\n", "output": "4\n", "testtype": "stdin"}]))
    problem = read_problem({"public_test_cases": public, "private_test_cases": private})
    assert [row.output for row in problem.tests] == ["2\n", "4\n"]
    function = [{"input": '[1, 2]\n"a"', "output": "[true]", "testtype": "functional"}]
    problem = read_problem(
        {"public_test_cases": json.dumps(function), "metadata": '{"func_name": "g"}'}
    )
    assert (problem.fn_name, problem.names) == ("g", "stdlib")
    assert (problem.tests[0].input, problem.tests[0].output) == ([[1, 2], "a"], [True])


def test_apps_takes_text_or_columns() -> None:
    content = {"inputs": ["1\n", ["2", "3"]], "outputs": ["x\n", ["y", "z"]]}
    for data in ({"input_output": json.dumps(content)}, content):
        problem = read_problem(data)
        assert [row.input for row in problem.tests] == ["1\n", "2\n3"]
    call = {"inputs": [[1, 2]], "outputs": [[3]], "fn_name": "add"}
    problem = read_problem({"input_output": json.dumps(call)})
    assert (problem.fn_name, problem.tests[0].output) == ("add", 3)


def test_humaneval_and_mbpp() -> None:
    problem = read_problem(
        {"prompt": "def f(x):\n", "entry_point": "f", "test": "def check(c):\n    assert c(1)"}
    )
    assert (problem.type, problem.context) == ("assertions", "def f(x):\n")
    problem = read_problem({"test_imports": ["import math"], "test_list": ["assert g(1) == 2"]})
    assert (problem.fn_name, problem.assertions) == ("g", "import math\nassert g(1) == 2")
    problem = read_problem({"test_setup_code": "", "test_list": ["assert g(1)\r\n"]})
    assert problem.assertions == "assert g(1)"


def test_the_wording_of_a_problem_is_no_option() -> None:
    """The full MBPP has it in a column `text`."""
    row = {"text": "Write a function.", "test_setup_code": "", "test_list": ["assert f(1) == 2"]}
    assert read_problem(row).text is None
    assert read_problem({**row, "text": {"ignore_case": True}}).text == TextRules(ignore_case=True)


def test_options_come_along_with_any_schema() -> None:
    problem = read_problem(
        {
            "test_list": ["assert g(1) == 2"],
            "time_limit_s": 1.5,
            "values": {"unordered": True},
            "min_isolation": "cgroups",
        }
    )
    assert (problem.time_limit_s, problem.min_isolation) == (1.5, "cgroups")


STDIN = {"type": "stdin", "tests": [{"input": "", "output": "1"}]}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "nothing in it"),
        ({"foo": 1}, "foo in it"),
        ({"schema": "x"}, "schema 'x'"),
        ({"type": "stdin", "tests": []}, "no test"),
        ({"type": "function", "tests": [{"input": [], "output": 1}]}, "needs fn_name"),
        ({**STDIN, "fn_nme": "f"}, "fn_nme"),
        ({"type": "stdin", "tests": [{"input": "", "output": " \n"}]}, "no test expects"),
        ({"type": "stdin", "tests": [{"input": "", "output": 1}]}, "are text"),
        ({"type": "stdin", "tests": [{"input": ""}]}, "output"),
        ({"type": "function", "fn_name": "f()", "tests": [{"input": [], "output": 1}]}, "pattern"),
        ({"type": "function", "fn_name": "f", "tests": [{"input": 1, "output": 1}]}, "arguments"),
        ({**STDIN, "assertions": "assert f()"}, "no assertions"),
        ({**STDIN, "checker": {}}, "exactly one"),
        ({"type": "assertions", "fn_name": "f", "assertions": " "}, "takes a block"),
        ({"language": "rust", "test_cases": [{}]}, "only python"),
        ({"test_cases": []}, "empty"),
        ({"test_cases": [{"type": "function_call", "input": [], "output": 1}]}, "fn_name"),
        ({"test_cases": [{"type": "other", "input": "", "output": "1"}]}, "types other"),
        ({"inputs": ["1"], "outputs": []}, "1 inputs and 0 outputs"),
        ({"input_output": "{"}, "schema apps"),
        ({"public_test_cases": "[]"}, "none"),
        ({"private_test_cases": "AAAA"}, "zlib"),
        ({"test_list": ["assert 1"]}, "no function"),
        ({"test_list": 5}, "schema mbpp"),
    ],
)
def test_what_cannot_be_judged_is_an_error_that_says_why(data: dict[str, Any], words: str) -> None:
    with pytest.raises(ProblemError, match=words):
        read_problem(data)


def test_an_error_never_quotes_an_expected_output() -> None:
    with pytest.raises(ProblemError) as caught:
        read_problem({"type": "stdin", "tests": [{"input": 3, "output": "SECRET"}]})
    assert "SECRET" not in str(caught.value)


class Touches:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (os.mkdir, (self.path,))


@pytest.mark.parametrize("protocol", range(6))
def test_plain_pickles_are_read_at_every_protocol(protocol: int) -> None:
    value = [{"a": [1, -2, 10**30, 0.5, None, True, "é"], "b": ()}]
    assert unpack_tests(packed(value, protocol)) == value


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_that_name_anything_are_refused_and_run_nothing(
    protocol: int, tmp_path: Any
) -> None:
    path = tmp_path / "made"
    with pytest.raises(ValueError, match="opcode"):
        unpack_tests(packed([1, Touches(str(path))], protocol))
    assert not path.exists()


@pytest.mark.parametrize(
    "value",
    [len, {1, 2}, bytearray(b"x"), complex(1, 2), object, os.path],
    ids=["builtin", "set", "bytearray", "complex", "class", "module"],
)
def test_nothing_but_plain_data_comes_out(value: Any) -> None:
    try:
        text = packed([value])
    except TypeError:
        pytest.skip("Python itself doesn't pickle it")
    with pytest.raises(ValueError, match="opcode"):
        unpack_tests(text)


def test_a_bomb_is_refused_before_it_unfolds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed_tests, "MAX_UNPACKED", 1 << 20)
    bomb = base64.b64encode(zlib.compress(b"N" * (8 << 20), 9)).decode()
    with pytest.raises(ValueError, match="larger"):
        unpack_tests(bomb)


@given(st.binary(max_size=60))
def test_any_bytes_end_in_a_value_or_a_value_error(data: bytes) -> None:
    text = base64.b64encode(zlib.compress(data)).decode()
    with contextlib.suppress(ValueError):
        unpack_tests(text)
