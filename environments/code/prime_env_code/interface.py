"""How a problem's arguments and result are written: for a program's streams, and in a prompt.

Called when a task is made; one problem can be asked for as a program or as a function.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from prime_env_code.families import Family
from prime_env_code.families.family import Shape

READ: dict[Shape, str] = {
    "int": "{name} = int(next(lines))",
    "str": "{name} = next(lines)",
    "ints": "next(lines)\n{name} = [int(x) for x in next(lines).split()]",
    "rows": "{name} = [next(lines) for _ in range(int(next(lines)))]",
}
WRITE = {
    "int": "print({call})",
    "str": "print({call})",
    "ints": "print(*{call})",
    "bool": 'print("YES" if {call} else "NO")',
}
DESCRIBE: dict[Shape, str] = {
    "int": "one line with the integer {name}",
    "str": "one line with the string {name}",
    "ints": "one line with the number of integers, then one line with the integers {name}, "
    "separated by blanks",
    "rows": "one line with the number of rows, then the rows {name}, one a line",
}
DESCRIBE_RESULT = {
    "int": "one integer",
    "str": "one line of text",
    "ints": "the integers on one line, separated by blanks",
    "bool": "YES or NO",
}
TYPES = {"int": "int", "str": "str", "ints": "list[int]", "rows": "list[str]", "bool": "bool"}


def program(family: Family, solve: str) -> str:
    """The source of `solve` as a program that reads and writes."""
    reading = "\n".join(READ[shape].format(name=name) for name, shape in family.arguments)
    call = f"solve({', '.join(name for name, _ in family.arguments)})"
    writing = WRITE[family.result].format(call=call)
    lines = 'lines = iter(sys.stdin.read().split("\\n"))'
    return f"import sys\n\n{solve}\n\n{lines}\n{reading}\n{writing}\n"


def input_text(family: Family, arguments: Sequence[Any]) -> str:
    """Standard input for these arguments."""
    lines: list[str] = []
    for (_, shape), value in zip(family.arguments, arguments, strict=True):
        if shape == "ints":
            lines += [str(len(value)), " ".join(map(str, value))]
        elif shape == "rows":
            lines += [str(len(value)), *value]
        else:
            lines.append(str(value))
    return "\n".join(lines) + "\n"


def output_text(family: Family, result: Any) -> str:
    """Standard output for this result."""
    if family.result == "bool":
        return "YES\n" if result else "NO\n"
    if family.result == "ints":
        return " ".join(map(str, result)) + "\n"
    return f"{result}\n"


def ask_for_program(family: Family) -> str:
    """What the program reads and writes, in words."""
    reads = "; then ".join(DESCRIBE[shape].format(name=name) for name, shape in family.arguments)
    return f"Input: {reads}.\nOutput: {DESCRIBE_RESULT[family.result]}."


def ask_for_function(family: Family) -> str:
    """The signature of the function, in words."""
    names = ", ".join(f"{name}: {TYPES[shape]}" for name, shape in family.arguments)
    return f"Write a function `solve({names}) -> {TYPES[family.result]}`."


def show_example(family: Family, kind: str, arguments: Sequence[Any], result: Any) -> str:
    """One example as the prompt shows it."""
    if kind == "stdin":
        given, made = input_text(family, arguments), output_text(family, result)
        return f"Example input:\n{given}Example output:\n{made}".rstrip()
    shown = ", ".join(json.dumps(argument) for argument in arguments)
    return f"Example: solve({shown}) returns {json.dumps(result)}"
