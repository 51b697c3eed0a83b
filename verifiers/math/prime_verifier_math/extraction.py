"""The answer that a completion gives: thoughts off, then box, statement, or nothing.

`extract` is called once a verdict and reports the rule it used; it knows nothing of the gold but
how many parts it asks for. All scans are linear in the completion.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass

from prime_verifier_math.box_runs import (
    contents,
    named,
    named_besides,
    runs,
    side_by_side,
    together,
    together_named,
)
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

MAX_REASON = 200  # characters in front of a box that say why it is the answer
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
# what says that the box behind it is the answer
_ANSWERS = re.compile(r"\b(?:answer|final|therefore|thus|hence|so|only solution)\b", re.IGNORECASE)
# the half of the day behind a box that holds a time
_HALF = re.compile(r"[\s$~\\]*(?:text\s*\{\s*)?(?P<half>[ap])\.?\s?m\b", re.IGNORECASE)
_TIME = re.compile(r"\s*\d{1,2}(?::\d\d)?\s*")


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
    live = _live(text, boxes)
    pairs = itertools.pairwise(live)
    if len(live) > 1 and all(side_by_side(text, one, two) for one, two in pairs):
        return Extraction(together(live), f"{len(live)} boxes side by side")
    if len(live) > 1 and (listed := named(text, live)) and not named_besides(text, boxes, live):
        return Extraction(listed, f"{len(live)} named boxes")
    if len(live) > 1:
        rule = f"{len(live)} boxes, none retracted"
        if listed := together_named(text, live):
            return Extraction(listed, rule)
        return Extraction(together(live), rule, tuple(contents(live)) if len(live) <= 12 else ())
    later = behind[-MAX_TAIL:] if behind.strip() else ""
    spoken = spoken_statement(later) or (marked(later) if params.number_marker else None)
    parts = _steps(text, boxes)
    half = _HALF.match(behind) if _TIME.fullmatch(last.content) else None
    return Extraction(
        last.content if half is None else rf"{last.content} \text{{{half['half']}m}}",
        "last box" if len(boxes) > 1 else "box",
        parts if len(parts) > 1 else (),
        spoken.value if spoken is not None else "",
        (*beside(text, last.start, last.end), *found.offered),
    )


def _live(text: str, boxes: list[Box]) -> list[Box]:
    """The boxes that together are the answer: the last run, and those that gave way to nothing.

    A run that is written once more is one; a box of another run with the last box's content, too.
    """
    *earlier, final = runs(text, boxes)
    live = final
    following = final[0]
    for run in reversed(earlier):
        between = text[run[-1].end : following.start]
        following = run[0]
        if contents(run) == contents(final):
            continue
        if _superseded(between):
            break
        live = [*run, *live]
    last = boxes[-1]
    return [box for box in live if box is last or contents([box]) != contents([last])]


def _steps(text: str, boxes: list[Box]) -> tuple[str, ...]:
    """The contents that together may be a list; none where the last one was chosen of a list."""
    *earlier, final = runs(text, boxes)
    for run in earlier:
        some = len(final) < len(run) and set(contents(final)) < set(contents(run))
        if some and _ANSWERS.search(text[run[-1].end : final[0].start][-MAX_REASON:]):
            return ()
    return tuple(dict.fromkeys(contents(boxes[-12:])))


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
