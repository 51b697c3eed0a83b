"""Which part of a completion is the program."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_code.extraction import extract

RIGHT = "```python\nprint(1)\n```"


@pytest.mark.parametrize(
    ("text", "code", "rule"),
    [
        (RIGHT, "print(1)\n", "last_python_block"),
        (f"so\n\n{RIGHT}\n\nand so on", "print(1)\n", "last_python_block"),
        ("```python\nprint(0)\n```\nbetter:\n" + RIGHT, "print(1)\n", "last_python_block"),
        (RIGHT + "\n```text\n1\n```", "print(1)\n", "last_python_block"),
        (RIGHT + "\n```\n1\n```", "print(1)\n", "last_python_block"),
        ("```\nprint(1)\n```", "print(1)\n", "last_untagged_block"),
        ("```PY\nprint(1)\n```", "print(1)\n", "last_python_block"),
        ("``` Python3 title\nprint(1)\n```", "print(1)\n", "last_python_block"),
        ("```python\r\nprint(1)\r\n```\r\n", "print(1)\n", "last_python_block"),
        ("````python\ns = '''\n```\n'''\n````", "s = '''\n```\n'''\n", "last_python_block"),
        # An indented fence is part of a docstring, not of the answer.
        ('```python\n"""\n  ```\n"""\n```', '"""\n  ```\n"""\n', "last_python_block"),
        # The first block is never closed, the second one is.
        ("```python\nprint(0)\n" + RIGHT, "print(1)\n", "last_python_block"),
        ("```python\n\ufeffprint(1)\n```", "print(1)\n", "last_python_block"),
        ("```python\nprint(1)", None, "no_complete_block"),
        ("```cpp\nint x;\n```", None, "no_complete_block"),
        ("print(1)", None, "no_complete_block"),
        ("", None, "no_complete_block"),
        ("```python\n  \n```", None, "empty_block"),
        ("```python\n\ufeff\ufeff\n```", None, "empty_block"),
        (f"<think>\n{RIGHT}\n</think>\nno", None, "no_complete_block"),
        (f"<think>\n```python\nprint(0)\n</think>\n{RIGHT}", "print(1)\n", "last_python_block"),
        (f"{RIGHT}\nthought</think>", None, "no_complete_block"),
        (f"<think>\n{RIGHT}", None, "thinking_not_closed"),
        (f"a</think>\n<think>\n{RIGHT}", None, "thinking_not_closed"),
        (f"text with <think> in it\n{RIGHT}", "print(1)\n", "last_python_block"),
    ],
)
def test_the_last_complete_python_block_of_the_answer_is_the_program(
    text: str, code: str | None, rule: str
) -> None:
    found = extract(text)
    assert (found.code, found.rule) == (code, rule)


def test_whole_takes_all_but_the_thinking() -> None:
    assert extract("<think>x</think>    return 1\n", "whole").code == "    return 1\n"
    assert extract("<think>x</think> \n", "whole").code is None
    assert extract("\ufeff\ufeff", "whole").code is None


@pytest.mark.parametrize("text", ["```{}`", "{}```{}`", "<think{}", "```{}\n", "{}<think>`"])
@pytest.mark.parametrize("blanks", [" ", "\t", "`", "\n"])
def test_no_text_takes_the_square_of_its_length(text: str, blanks: str) -> None:
    before = time.process_time()
    extract(text.replace("{}", blanks * 200_000))
    assert time.process_time() - before < 20


@given(st.text(alphabet="`python \n<>/thik\r\x00\ud800"))
def test_any_text_gets_an_answer(text: str) -> None:
    found = extract(text)
    assert found.code is None or found.code.strip()
