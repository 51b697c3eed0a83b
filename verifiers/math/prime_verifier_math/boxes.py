"""Finding boxes: every `\\boxed{...}` with its content and place, in one linear scan.

Called by `extraction.py`; a box inside a box is the inner one, an unclosed box at the end of the
text is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BRACES = re.compile(r"\\.|[{}]|\$\$?|\n\s*\n", re.DOTALL)
MAX_BOXES = 400


@dataclass(frozen=True, slots=True)
class Box:
    """The content of a box and where the command starts and ends."""

    content: str
    start: int
    end: int


def find_boxes(text: str) -> list[Box]:
    """The last boxes of the text, at most MAX_BOXES, in order; contents without inner boxes."""
    starts = [(match.start(), match.end()) for match in _COMMAND.finditer(text)]
    found: list[Box] = []
    reach = 0
    for start, after in starts[-MAX_BOXES:]:
        if start < reach:
            continue
        box = _box_at(text, start, after)
        if box is not None:
            found.append(box)
            reach = box.end
    return found


def _box_at(text: str, start: int, after: int) -> Box | None:
    if after >= len(text):
        return None
    if text[after] != "{":
        match = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]").match(text, after)
        return Box(match[0], start, match.end()) if match else None
    depth = 0
    for match in _BRACES.finditer(text, after):
        mark = match[0]
        if mark == "{":
            depth += 1
        elif mark == "}":
            depth -= 1
            if depth == 0:
                return Box(_inner(text[after + 1 : match.start()]), start, match.end())
        elif mark in ("$", "$$", r"\]", r"\)") and depth == 1 and _unclosed(text, after):
            # the brace was forgotten, the formula ends: \boxed{7$
            return Box(text[after + 1 : match.start()], start, match.end())
    return None


def _unclosed(text: str, after: int) -> bool:
    """Whether the brace at `after` never closes."""
    depth = 0
    for match in _BRACES.finditer(text, after):
        if match[0] == "{":
            depth += 1
        elif match[0] == "}":
            depth -= 1
            if depth == 0:
                return False
    return True


def _inner(content: str) -> str:
    """A box in a box is its content; text around it stays."""
    if "box" not in content:
        return content
    return _COMMAND.sub("", content)
