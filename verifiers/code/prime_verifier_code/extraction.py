"""The cleaning step: which part of a completion is the program that is judged.

Called by the verifier before any jail is asked for; a pure function of the text, and its rule's
name goes into the evidence of every score.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

RuleName = Literal["last_block", "whole"]

PYTHON_TAGS = ("python", "py", "python3")
# A fence stands at the very start of a line: docstrings may hold indented ones.
FENCE = re.compile(r"(`{3,})([^`]*)")
TAG = re.compile(r"[A-Za-z0-9_+#.-]*")
THINKING_OPENS = re.compile(r"^[ \t]*<think>", re.MULTILINE)
THINKING_CLOSES = "</think>"


@dataclass(frozen=True, slots=True)
class Extracted:
    """What the cleaning step found.

    Attributes:
        code: the program, line ends as LF; None where there is none.
        rule: the name of the rule that chose it, or that says why nothing was chosen.
    """

    code: str | None
    rule: str


@dataclass(frozen=True, slots=True)
class _Block:
    tag: str
    code: str


def extract(text: str, rule: RuleName = "last_block") -> Extracted:
    """The program in a completion.

    Rule `last_block`: of the text after the last `</think>` (a `<think>` that is never closed
    leaves nothing), the last complete fenced block tagged python, py or python3, else the last
    complete block without a tag; other tags never count, nor does a block without its closing
    fence. Rule `whole`: the text after the thinking, as it is.
    """
    answer = after_thinking(text.replace("\r\n", "\n"))
    if answer is None:
        return Extracted(None, "thinking_not_closed")
    if rule == "whole":
        return Extracted(None, "empty") if _blank(answer) else Extracted(answer, "whole")
    blocks = complete_blocks(answer)
    for name, wanted in (("last_python_block", PYTHON_TAGS), ("last_untagged_block", ("",))):
        codes = [block.code for block in blocks if block.tag in wanted]
        if codes:
            return _not_blank(codes[-1], name)
    return Extracted(None, "no_complete_block")


def _not_blank(code: str, rule: str) -> Extracted:
    # A byte order mark is an editor's habit, not a mistake of the program.
    code = code.removeprefix("\ufeff")
    return Extracted(None, "empty_block") if _blank(code) else Extracted(code, rule)


def _blank(code: str) -> bool:
    """Nothing but blanks and byte order marks, of which cleaning would drop some."""
    return not code.replace("\ufeff", "").strip()


def after_thinking(text: str) -> str | None:
    """What follows the last `</think>`, or None where a `<think>` is still open."""
    answer = text.rpartition(THINKING_CLOSES)[2]
    return None if THINKING_OPENS.search(answer) else answer


def complete_blocks(text: str) -> list[_Block]:
    """The fenced blocks that are closed, in order.

    A fence with a tag opens a block even inside an open one: models forget to close a first
    sketch, and a line of Python never looks like that.
    """
    blocks: list[_Block] = []
    fence, tag, lines = "", "", []  # an empty fence: not inside a block
    for line in text.split("\n"):
        found = FENCE.fullmatch(line.rstrip())
        if found is None:
            lines.append(line)
            continue
        marks, info = found[1], found[2].strip()
        if fence and not info and len(marks) >= len(fence):
            blocks.append(_Block(tag, "\n".join([*lines, ""])))
            fence = ""
        elif fence and (not info or len(marks) < len(fence)):
            lines.append(line)
        else:
            opened = TAG.match(info)
            assert opened is not None
            # Prose behind three back-quotes (``` works?) is another tag, never an untagged block.
            fence, tag, lines = marks, opened[0].lower() or info, []
    return blocks
