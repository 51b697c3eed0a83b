"""Finding boxes: every `\\boxed{...}` with its content and place, in one linear scan.

Called by `extraction.py`; a box inside a box is the inner one, an unclosed box at the end of the
text is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COMMAND = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_BRACES = re.compile(r"\\.|[{}]|\$\$?", re.DOTALL)
_BARE = re.compile(r"-?\d+(?:\.\d+)?|[A-Za-z]")
MAX_BOXES = 60
MAX_UNCLOSED = 2_000  # characters looked at for the end of a formula whose box never closes


@dataclass(frozen=True, slots=True)
class Box:
    """The content of a box and where the command starts and ends."""

    content: str
    start: int
    end: int


def find_boxes(text: str) -> list[Box]:
    """The last boxes of the text, at most MAX_BOXES, in order; contents without inner boxes."""
    starts = [(match.start(), match.end()) for match in _COMMAND.finditer(text)][-MAX_BOXES:]
    if not starts:
        return []
    closing = _closing_braces(text, starts[0][1])
    found: list[Box] = []
    reach = 0
    for start, after in starts:
        if start < reach:
            continue
        box = _box_at(text, start, after, closing)
        if box is not None:
            found.append(box)
            reach = box.end
    return found


def _closing_braces(text: str, start: int) -> dict[int, int]:
    """Where each brace that opens behind `start` closes; those that never do aren't in it."""
    closing: dict[int, int] = {}
    opened: list[int] = []
    for match in _BRACES.finditer(text, start):
        if match[0] == "{":
            opened.append(match.start())
        elif match[0] == "}" and opened:
            closing[opened.pop()] = match.start()
    return closing


def _box_at(text: str, start: int, after: int, closing: dict[int, int]) -> Box | None:
    if after >= len(text):
        return None
    if text[after] != "{":
        match = _BARE.match(text, after)
        return Box(match[0], start, match.end()) if match else None
    if after in closing:
        end = closing[after]
        return Box(_inner(text[after + 1 : end]), start, end + 1)
    depth = 0
    for match in _BRACES.finditer(text, after, after + MAX_UNCLOSED):
        if match[0] in "{}":
            depth += 1 if match[0] == "{" else -1
        elif match[0] in ("$", "$$", r"\]", r"\)") and depth == 1:
            # the brace was forgotten, the formula ends: \boxed{7$
            return Box(text[after + 1 : match.start()], start, match.end())
    return None


def _inner(content: str) -> str:
    """A box in a box is its content; text around it stays."""
    if "box" not in content:
        return content
    return _COMMAND.sub("", content)
