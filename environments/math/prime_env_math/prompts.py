r"""How a problem is asked: styles of the final answer, system prompt, worked examples.

Called by the environment when it makes its tasks; the prompt is part of a task, so that the digest
covers it. The boxed and the #### style are the field's two conventions (MATH, GSM8K).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from prime_core.api import Instruction, Message, Params, with_instruction

StyleName = Literal["boxed", "gsm8k", "plain"]

INSTRUCTIONS: dict[StyleName, str] = {
    "boxed": r"Put the final answer in \boxed{}.",
    "gsm8k": "Write the final number on a line of its own, after ####.",
    "plain": "",
}
ANSWERS: dict[StyleName, str] = {
    "boxed": r"The answer is \boxed{{{gold}}}.",
    "gsm8k": "#### {gold}",
    "plain": r"The answer is \boxed{{{gold}}}.",
}


class Example(Params):
    """A worked example: the problem, the way to the answer, the answer."""

    problem: str = Field(min_length=1, description="the problem")
    solution: str = Field("", description="the way to the answer, without the answer's own line")
    answer: str = Field(min_length=1, description="the final answer")


EXAMPLES: tuple[Example, ...] = (
    Example(
        problem="A box holds 4 rows of 6 eggs. Nine of them are sold. How many are left?",
        solution="There are 4 * 6 = 24 eggs. After the sale 24 - 9 = 15 are left.",
        answer="15",
    ),
    Example(
        problem="Mia has three times as many cards as Ben, and together they have 48. How many "
        "cards does Ben have?",
        solution="Together they have 4 times what Ben has, so Ben has 48 / 4 = 12 cards.",
        answer="12",
    ),
    Example(
        problem="A train covers 150 km in 2 hours. How many kilometres does it cover in 5 hours "
        "at the same speed?",
        solution="In one hour it covers 150 / 2 = 75 km, so in 5 hours 5 * 75 = 375 km.",
        answer="375",
    ),
    Example(
        problem="What is the sum of all whole numbers from 1 to 20?",
        solution="They form 10 pairs that add up to 21 each: 10 * 21 = 210.",
        answer="210",
    ),
)


def answer_text(style: StyleName, gold: str) -> str:
    """How a completion ends that gives this answer in this style."""
    return ANSWERS[style].format(gold=gold)


def build_prompt(
    problem: Sequence[Message],
    *,
    style: StyleName,
    instruction: str | None,
    system_prompt: str,
    examples: Sequence[Example],
) -> tuple[Message, ...]:
    """The messages before any length-budget instruction.

    Args:
        problem: the task's own messages, the last of the user.
        style: how the answer is asked for.
        instruction: replaces the style's sentence; None leaves it.
        system_prompt: text of the system message, in front of a system message of the problem.
        examples: shown as earlier turns, each asked as the problem is.
    """
    sentence = INSTRUCTIONS[style] if instruction is None else instruction
    wish = Instruction(sentence) if sentence else None
    own = list(problem)
    system = [own.pop(0).content] if own and own[0].role == "system" else []
    system = [system_prompt, *system] if system_prompt else system
    turns: list[Message] = [Message("system", "\n\n".join(system))] if system else []
    for example in examples:
        turns += with_instruction([Message("user", example.problem)], wish)
        said = [example.solution, answer_text(style, example.answer)]
        turns.append(Message("assistant", "\n".join(part for part in said if part)))
    return (*turns, *with_instruction(own, wish))
