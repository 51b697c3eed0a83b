"""The hard family of small stack machines: following a specification to the letter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_env_code.families.family import Draws, Family

NAMES = {
    "push": ("push", "load", "put"),
    "plus": ("plus", "add", "sum"),
    "times": ("times", "mul", "product"),
    "swap": ("swap", "flip", "exchange"),
    "drop": ("drop", "pop", "forget"),
    "copy": ("copy", "dup", "again"),
    "neg": ("neg", "minus", "negate"),
}


def _machine(draws: Draws) -> dict[str, Any]:
    names = {key: draws.choice(choices) for key, choices in NAMES.items()}
    return names | {"cap": draws.between(50, 400)}


def _machine_inputs(draws: Draws, parameters: Mapping[str, Any]) -> list[list[Any]]:
    p = parameters
    first = [f"{p['push']} 7", f"{p['push']} 5", p["plus"], p["copy"], p["times"]]
    second = [f"{p['push']} 2", f"{p['push']} 9", p["swap"], p["neg"], p["plus"]]
    third = [f"{p['push']} {p['cap']}", f"{p['push']} 1", p["plus"]]
    programs = [first, second, third, [p["plus"]], [f"{p['push']} 3", p["neg"], p["drop"]]]
    binary = ("plus", "times", "swap")
    for _ in range(6):
        program, depth = [], 0
        for _ in range(draws.between(6, 24)):
            keys = ["push"] + (["copy", "neg", "drop"] if depth else [])
            key = draws.choice([*keys, *(binary if depth > 1 else ())])
            program.append(f"{p[key]} {draws.between(-9, 9)}" if key == "push" else p[key])
            depth += {"push": 1, "copy": 1, "neg": 0, "swap": 0}.get(key, -1)
        if draws.below(4) == 0:
            program.append(p["drop"])
        programs.append(program)
    return [[program] for program in programs]


MACHINE = Family(
    name="machine",
    difficulty="hard",
    arguments=(("rows", "rows"),),
    result="str",
    statement="A machine has a stack of integers, empty at first, and runs one instruction a row. "
    "'@push@ x' puts x on top; '@plus@' takes the two topmost numbers and puts their sum; "
    "'@times@' does the same with their product; '@swap@' exchanges the two topmost; '@drop@' "
    "removes the topmost; '@copy@' puts the topmost once more; '@neg@' changes its sign. A "
    "number above @cap@ or below -@cap@ is replaced by 0 as soon as it is put on the stack by "
    "any instruction. An instruction that needs more numbers than there are stops the "
    "machine. Give the final stack from bottom to top, numbers separated by commas, or the "
    "word error if it was stopped. An empty stack is the word empty.",
    right="""
def solve(rows):
    stack = []

    def put(x):
        stack.append(x if -@cap@ <= x <= @cap@ else 0)

    for row in rows:
        name, _, number = row.partition(" ")
        needs = {"@push@": 0, "@plus@": 2, "@times@": 2, "@swap@": 2}.get(name, 1)
        if len(stack) < needs:
            return "error"
        if name == "@push@":
            put(int(number))
        elif name == "@plus@":
            put(stack.pop() + stack.pop())
        elif name == "@times@":
            put(stack.pop() * stack.pop())
        elif name == "@swap@":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "@drop@":
            stack.pop()
        elif name == "@copy@":
            put(stack[-1])
        else:
            put(-stack.pop())
    return ",".join(map(str, stack)) or "empty"
""",
    wrong=(
        """
def solve(rows):
    stack = []
    for row in rows:
        name, _, number = row.partition(" ")
        needs = {"@push@": 0, "@plus@": 2, "@times@": 2, "@swap@": 2}.get(name, 1)
        if len(stack) < needs:
            return "error"
        if name == "@push@":
            stack.append(int(number))
        elif name == "@plus@":
            stack.append(stack.pop() + stack.pop())
        elif name == "@times@":
            stack.append(stack.pop() * stack.pop())
        elif name == "@swap@":
            stack[-1], stack[-2] = stack[-2], stack[-1]
        elif name == "@drop@":
            stack.pop()
        elif name == "@copy@":
            stack.append(stack[-1])
        else:
            stack.append(-stack.pop())
    return ",".join(map(str, stack)) or "empty"
""",
        """
def solve(rows):
    stack = []
    for row in rows:
        name, _, number = row.partition(" ")
        if name == "@push@":
            stack.append(int(number))
        elif name == "@plus@" and len(stack) > 1:
            stack.append(stack.pop() + stack.pop())
        elif name == "@times@" and len(stack) > 1:
            stack.append(stack.pop() * stack.pop())
        elif name == "@drop@" and stack:
            stack.pop()
        elif name == "@copy@" and stack:
            stack.append(stack[-1])
    return ",".join(map(str, stack)) or "empty"
""",
    ),
    draw=_machine,
    inputs=_machine_inputs,
)
