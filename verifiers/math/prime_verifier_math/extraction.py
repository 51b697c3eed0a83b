"""The answer that a completion gives: thoughts off, then box, statement, or nothing.

`extract` is called once a verdict and reports the rule it used; it knows nothing of the gold but
how many parts it asks for. All scans are linear in the completion.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from prime_verifier_math.boxes import Box, find_boxes
from prime_verifier_math.denials import NEAR, denied, without_struck
from prime_verifier_math.doubts import Doubts, doubts
from prime_verifier_math.hedges import Candidate, beside
from prime_verifier_math.params import MathParams
from prime_verifier_math.statements import (
    Statement,
    earlier_statement,
    last_statement,
    marked,
    spoken_statement,
)

MAX_TAIL = 60_000  # characters at the end of a completion that are searched for statements
_CLOSE = re.compile(r"</(?:think|thinking|thought|thoughts|reasoning)\s*>", re.IGNORECASE)
_OPEN = re.compile(r"<(?:think|thinking|thought|thoughts|reasoning)\s*>", re.IGNORECASE)
_BOLD = re.compile(r"</?(?:b|strong)>")
_RETRACTS = re.compile(
    r"\b(?:wait|oops|actually|correction|corrected|scratch that|on second thought|"
    r"(?:is|was|that's|it's) (?:wrong|incorrect|not right|not correct|not valid|invalid)|"
    r"mistake|mistaken|in error|an error|miscalculat\w*|misread|redo\w*|recount\w*|recheck\w*|"
    r"(?:this|that|which|it) fails|doesn't (?:work|hold|satisfy)|does not (?:work|hold|satisfy)|"
    r"ruled out|discard|disregard|retract|hmm|no(?=[,:.;!])|sign error|instead|"
    r"should (?:be|have been)|not)\b",
    re.IGNORECASE,
)
_RETRACTS_LAST = re.compile(
    r"\b(?:scratch that|retract|disregard (?:that|this|the|my)|ignore (?:that|my|the above|this)|"
    r"(?:that|this|which|it|answer|above|box|value) (?:is|was) "
    r"(?:wrong|incorrect|not right|not correct|a mistake|an error|mistaken)|"
    r"(?:that's|it's) (?:wrong|incorrect|not right|not correct)|never mind|"
    r"(?:that|this|it) (?:can't|cannot|can not) be (?:right|correct)|"
    r"(?:that|this|it) (?:doesn't|does not) (?:look|seem) (?:right|correct)|"
    r"(?:ignore|disregard) (?:the|my|this|that) (?:box|answer|above|previous)|"
    r"i (?:made|was) (?:a mistake|an error|wrong|mistaken)|"
    r"(?<!\b[a-z] )(?<!\b[a-z]\) )is not (?:correct|right)|strike that|just kidding|"
    r"(?:that|this|(?:answer|value|box|result)(?: above)?)"
    r"(?:['’]s not| is not| isn['’]t| wasn['’]t| was not) (?:the |a )?(?:correct|right)|"
    r"correction\b|should have been|should instead be)",
    re.IGNORECASE,
)
# a statement is taken back where a sentence behind it begins so
_RETRACTS_NEXT = re.compile(
    r"(?:\A|[.!?…]\s+|\n\s*)(?:(?:oops|hmm+|wait|oh|no|sorry|actually|but|please)\b[,.!…\s]*+)*+"
    + _RETRACTS_LAST.pattern,
    re.IGNORECASE,
)
_FAILS = re.compile(
    r"[\s$\\)\].*]*(?:(?:(?:is|was|would be|[-–—:,(])\s*(?:which (?:is|was|would be)\s+)?"
    r"(?:wrong|incorrect|invalid|rejected|retracted|discarded|ruled out|extraneous|a mistake|"
    r"not (?:right|valid|(?:the |my |our )?(?:final |correct |right )?answer|"
    r"(?:the )?(?:correct|right)(?: one| value| result)?))|"
    r"(?:is|was|wo|would|ca|could)n['’]t (?:be )?(?:the |my |our )?"
    r"(?:right|correct|valid|true|final answer|answer)|"
    r"cannot be (?:the )?(?:right|correct|answer))\b)",
    re.IGNORECASE,
)
_HEDGES = re.compile(
    r"\b(?:or|either|alternatively|maybe|perhaps|possibly|might|could|unless|whichever|both|"
    r"candidates?|not sure|uncertain|(?:answer|option|candidate|guess|possibility) ?#?\d)\b",
    re.IGNORECASE,
)
_CONCLUDES = re.compile(
    r"\b(?:final|therefore|thus|hence|so|conclude|conclusion|answer|finally|result|overall|"
    r"summary|altogether|total|consequently|gives|get|obtain|which means|now|then|step)\b|"
    r"\n[ \t]*+\n",
    re.IGNORECASE,
)
# what may stand between boxes that are one answer: every alternative begins with another character
_JOINS = re.compile(
    r"(?:[\s,;.$&]|\\(?:quad|qquad|,|;|text\{\s*+(?:and|or)\s*+\}|\(|\)|\[|\])|and\b|or\b)*+",
    re.IGNORECASE,
)


# the name of a boxed value in front of its box, where it isn't the end of an expression: 2x =
_NAMED = re.compile(
    r"(?:^|[$,;(&\[.:\n]|[A-Za-z$,;.:]\s)\s*(?P<named>[A-Za-z](?:_(?:\w|\{\w\}))?\s*=\s*)$"
)
_CONSTANTS = frozenset("ei")  # e = 5 isn't read as a named value
MAX_NAME = 24  # characters looked at


@dataclass(frozen=True, slots=True)
class Extraction:
    """The answer's text ("" for none) and the rule that found it; `parts` where boxes stand apart.

    `rival` is a later statement of another answer; `offered` are values right beside the box.
    """

    text: str
    rule: str
    parts: tuple[str, ...] = ()
    rival: str = ""
    offered: tuple[Candidate, ...] = ()


def final_text(completion: str) -> str | None:
    """What follows the last thought; None where a thought is never closed."""
    if "<" not in completion:
        return completion
    last = 0
    for match in _CLOSE.finditer(completion):
        last = match.end()
    if _OPEN.search(completion, last):
        return None
    return completion[last:]


def extract(completion: str, params: MathParams) -> Extraction:
    """The final answer of a completion."""
    text = final_text(completion)
    if text is None:
        return Extraction("", "an unclosed thought")
    text = _marked_up(without_struck(text))
    if "box" in text:
        filled = [box for box in find_boxes(text) if _says_something(box.content)]
        boxes = [box for box in filled if not denied(text[max(0, box.start - NEAR) : box.start])]
        if boxes:
            return _from_boxes(text, boxes, params)
        if filled:
            return _after_retraction(text[filled[-1].end :], params)
        if re.search(r"\\boxed\s*\{", text):
            return Extraction("", "an empty or unfinished box")
    tail = text[-MAX_TAIL:]
    if params.statements or params.number_marker:
        statement = last_statement(tail, marker=params.number_marker)
        if statement is not None and (params.statements or "marker" in statement.rule):
            return _from_statement(tail, statement, params)
    if params.last_number:
        return _last_number(tail)
    return Extraction("", "no answer stated")


def _marked_up(text: str) -> str:
    """Bold text of HTML as bold text of Markdown."""
    return _BOLD.sub("**", text) if "</b>" in text or "</strong>" in text else text


def _says_something(content: str) -> bool:
    """Whether a box holds more than brackets and spaces; the empty set counts."""
    return bool(content.strip(" {}$\\,;\n")) or "\\{" in content


def _from_boxes(text: str, boxes: list[Box], params: MathParams) -> Extraction:
    last = boxes[-1]
    behind = text[last.end :]
    found = doubts(behind, named=_in_words(last.content))
    if found.replaced:
        return Extraction(found.replaced, "correction behind the box", (), "", found.offered)
    if behind.strip() and (_RETRACTS_LAST.search(behind[:2_000]) or _FAILS.match(behind)):
        return _after_retraction(behind, params)
    group = [last]
    live = [last]
    following = last
    for box in reversed(boxes[:-1]):
        between = text[box.end : following.start]
        following = box
        if box.content.strip() == last.content.strip():
            continue
        if len(between) < 200 and _JOINS.fullmatch(between):
            group.insert(0, box)
            live.insert(0, box)
            continue
        if group[0] is box or _superseded(between):
            break
        live.insert(0, box)
    if len(group) > 1:
        return Extraction(_together(group), f"{len(group)} boxes side by side")
    hedged = [box for box in live if box is not last]
    if hedged and (named := _named(text, live)) and not _named_besides(text, boxes, live):
        return Extraction(named, f"{len(live)} named boxes")
    if hedged:
        stated = tuple(box.content.strip() for box in live) if len(live) <= 12 else ()
        return Extraction(_together(live), f"{len(live)} boxes, none retracted", stated)
    later = behind[-MAX_TAIL:] if behind.strip() else ""
    spoken = spoken_statement(later) or (marked(later) if params.number_marker else None)
    parts = tuple(dict.fromkeys(box.content.strip() for box in boxes[-12:]))
    return Extraction(
        last.content,
        "last box" if len(boxes) > 1 else "box",
        parts if len(parts) > 1 else (),
        spoken.value if spoken is not None else "",
        (*beside(text, last.start, last.end), *found.offered),
    )


def _in_words(value: str) -> bool:
    """Whether an answer is words and no number."""
    return re.search(r"(?<![A-Za-z\\])[A-Za-z]{2}", value) is not None and not re.search(
        r"\d", value
    )


def _superseded(between: str) -> bool:
    """Whether a box gives way to a later one: retracted, or a step before a conclusion."""
    near = between[:2_000]
    if _RETRACTS.search(near):
        return True
    if _HEDGES.search(near[-120:]) or _HEDGES.search(near[:120]):
        return False
    return bool(_CONCLUDES.search(near)) or len(between) > 400


def _named(text: str, boxes: list[Box]) -> str:
    """`x = \\boxed{1}, y = \\boxed{2}` as one list with its names; "" where it's no such list.

    Nothing but separators may stand between the boxes, and every one has a name of its own.
    """
    names = [_name(text, box) for box in boxes]
    if not all(names) or len(set(names)) < len(names) or _CONSTANTS & set(names):
        return ""
    if any("=" in box.content for box in boxes):
        return ""
    for one, two in itertools.pairwise(boxes):
        found = _NAMED.search(text[max(one.end, two.start - MAX_NAME) : two.start])
        between = text[one.end : two.start - len(found["named"])] if found else "or"
        if len(between) > MAX_NAME or not _JOINS.fullmatch(between) or "or" in between.lower():
            return ""
    listed = (f"{name} = {box.content.strip()}" for name, box in zip(names, boxes, strict=True))
    return ", ".join(listed)


def _named_besides(text: str, boxes: list[Box], taken: list[Box]) -> bool:
    """Whether a box that isn't taken has a name that none of the taken has."""
    names = {_name(text, box) for box in taken} | {""}
    return any(_name(text, box) not in names for box in boxes)


def _name(text: str, box: Box) -> str:
    """The name in front of a box, as in `x = `; "" where there is none."""
    found = _NAMED.search(text[max(0, box.start - MAX_NAME) : box.start])
    return re.sub(r"[{}\s=]", "", found["named"]) if found else ""


def _together(boxes: list[Box]) -> str:
    return ", ".join(box.content.strip() for box in boxes)


def _after_retraction(behind: str, params: MathParams) -> Extraction:
    """The statement that replaces a retracted box."""
    statement = last_statement(behind[-MAX_TAIL:], marker=params.number_marker)
    if statement is not None and params.statements:
        return Extraction(statement.value, "statement behind a retracted box")
    return Extraction("", "the box is retracted")


_OPTION = re.compile(r"\(?[A-Z]\)?(?=\.\s)")  # B. Perhaps C: an option, not its first words


def _from_statement(text: str, statement: Statement, params: MathParams) -> Extraction:
    """A statement, unless what follows takes it back, or other words offer another value."""
    behind = text[statement.end :]
    value = statement.value
    option = _OPTION.match(value)
    if option is not None and doubts(value[option.end() :] + behind) != Doubts():
        value, behind = option[0], value[option.end() :] + behind
    found = doubts(behind, named=_in_words(value))
    if found.replaced:
        return Extraction(found.replaced, "correction of a statement", (), "", found.offered)
    if _RETRACTS_NEXT.search(behind.lstrip(" .*\n")[:300]):
        return Extraction("", "the statement is retracted")
    offered = found.offered
    before = earlier_statement(text, statement, marker=params.number_marker)
    between = text[before.end : statement.start] if before is not None else ""
    if before is not None and not _superseded(between.replace("\n\n", "\n")):
        offered = (*offered, Candidate(before.value, condition=True))
    later = spoken_statement(behind) if "statement" not in statement.rule else None
    rival = later.value if later is not None else ""
    return Extraction(value, statement.rule, (), rival, offered)


_NUMBER = re.compile(r"-?\$?\d[\d,]*(?:\.\d+)?(?:/\d+)?%?")


def _last_number(text: str) -> Extraction:
    """The last number of the text, where the environment asks for it."""
    found = [match[0] for match in _NUMBER.finditer(text[-MAX_TAIL:])]
    if not found:
        return Extraction("", "no number")
    return Extraction(found[-1].rstrip(",").lstrip("$"), "last number")
