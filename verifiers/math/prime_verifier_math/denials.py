"""What is said before an answer, or around it, so that it isn't one: denials and struck-out text.

`extraction.py` takes struck-out passages off the text, and leaves out boxes that `denied` names.
Every pattern looks at a bounded piece of text; `without_struck` is linear.
"""

from __future__ import annotations

import re

NEAR = 100  # characters before a box that may deny it
_STRUCK = re.compile(
    r"(?<![^\s(>*_])~~(?=[^\s~])(?P<text>[^~\n]++)~~(?![^\s.,;:!?)*_])|"
    r"<(?P<tag>!--|(?:del|strike|s)>)",
    re.IGNORECASE,
)
_ENDS = {
    "!--": re.compile("-->"),
    "del>": re.compile("</del>", re.IGNORECASE),
    "strike>": re.compile("</strike>", re.IGNORECASE),
    "s>": re.compile("</s>", re.IGNORECASE),
}


def without_struck(text: str) -> str:
    """The text without passages that a reader sees struck out, or not at all (comments)."""
    if "~~" not in text and "<" not in text:
        return text
    kept: list[str] = []
    start = position = 0
    unclosed: set[str] = set()
    while True:
        found = _STRUCK.search(text, position)
        if found is None:
            return "".join((*kept, text[start:])) if kept else text
        end = _end(text, found, unclosed)
        position = found.end() if end is None else end
        if end is not None:
            kept += [text[start : found.start()], " "]
            start = end


def _end(text: str, found: re.Match[str], unclosed: set[str]) -> int | None:
    """Where a struck passage ends; None for one that never does, or a formula's spaces."""
    tag = found["tag"]
    if tag is None:
        return found.end() if found["text"].count("$") % 2 == 0 else None
    tag = tag.lower()
    if tag in unclosed:
        return None
    closing = _ENDS[tag].search(text, found.end())
    if closing is None:
        unclosed.add(tag)
        return None
    return closing.end()


_GAP = r"(?:[\s$*_`:]|\\[(\[]|[A-Za-z]\s*=)*+\Z"
_NO = r"(?:\bnot|n['’]t|\bcannot|\bnever)\s+"
_CLAUSE = r"[^.,;:!?\n]{0,40}\Z"
_HOLDS = r"(?:(?:the|my|our|this|that|it)\b[^.,;:!?\n]{0,25}\s)?(?:(?:is|was|equals|be)\b)?"
_DENIES = re.compile(
    "|".join((
        rf"{_NO}(?:(?:equal(?:\s+to)?|be|simply|the|correct|right|final|answer)\s+)*+{_GAP}",
        rf"(?:\\neq?|≠){_GAP}",
        # the wrong answer is, a common mistake is to answer
        r"\b(?:wrong|incorrect|false|invalid|erroneous|naive|mistaken|tempting|rejected)\s+"
        rf"(?:final\s+)?(?:answer|result|value|option|choice|solution)s?\s*(?:is|was|are|=)?{_GAP}",
        rf"\b(?:mistake|error|trap|pitfall|fallacy)\s+(?:here\s+)?(?:is|was|would be){_GAP}",
        r"\b(?:tempting|wrong|incorrect|(?:mistake|error|trap|pitfall)(?:\s+(?:is|was|would be))?)"
        r"\s+to\s+(?:answer|say|write|conclude|think|believe|claim|guess|put|give)\b"
        rf"{_CLAUSE}",
        r"\b(?:one|you)\s+(?:might|could|would|may)\s+(?:\w+\s+)?(?:think|guess|believe|assume)\b"
        rf"{_CLAUSE}",
        r"\b(?:some(?:one|body)?|people|many|students?|solvers?)\s+(?:might|could|would|may)\s+"
        rf"(?:\w+\s+)?(?:think|guess|believe|assume|say|answer|claim|conclude)\b{_CLAUSE}",
        r"\b(?:retract|ignore|disregard|reject|discard|ruled? out|withdraw|strike)\s+"
        r"(?:(?:the|my|this|that|any|earlier|previous|above|answer|value|box|option|of)\s+)*+"
        rf"{_GAP}",
    )),
    re.IGNORECASE,
)  # fmt: skip
# I don't think that it is, it isn't the case that the answer is, I doubt that it is
_DOUBTS = re.compile(
    rf"(?:{_NO}(?:\w+\s+){{0,2}}(?:think|believe|say|claim|agree|(?:true|the\s+case|likely|possible)"
    r"(?=\s+that))|\b(?:i|we|would|to)\s+(?:\w+\s+)?doubt|\b(?:false|untrue|unlikely|impossible)"
    rf"(?=\s+that))(?:\s+that)?\s+{_HOLDS}{_GAP}",
    re.IGNORECASE,
)
_COMPARES = re.compile(
    r"\b(?:more|better|less|fewer|greater|larger|smaller|other|anything|but|beyond|exceed\w*|than)\b",
    re.IGNORECASE,
)


# Every match of the patterns holds one of these: looking for them first costs a hundredth.
_TRIGGER_WORDS = (
    "not n't n’t never \\ne ≠ wrong incorrect false invalid erroneous naive mistake tempting "
    "reject error trap pitfall fallacy might could would may retract ignore disregard discard out "
    "withdraw strike doubt untrue unlikely impossible"
)
TRIGGERS = tuple(_TRIGGER_WORDS.split())


def denied(before: str) -> bool:
    """Whether the words right before an answer say that it isn't the answer."""
    near = before[-NEAR:]
    folded = near.casefold()
    return any(trigger in folded for trigger in TRIGGERS) and _denied(near)


def _denied(near: str) -> bool:
    if _DENIES.search(near):
        return True
    doubted = _DOUBTS.search(near)
    return doubted is not None and not _COMPARES.search(doubted[0])
