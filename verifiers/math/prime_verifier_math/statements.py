"""Explicit final-answer statements: "Final Answer: ...", "the answer is ...", `#### 42`, tags.

Called by `extraction.py` where no box stands; every pattern is anchored by fixed words, and what
follows is cut at the end of its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prime_verifier_math.options import said_right

MAX_STATEMENT = 1_200  # characters looked at behind a statement's words
MAX_TRIED = 20  # statements looked at, from the last

# runs of white space are possessive: nothing behind them may give them back
_WORDS = re.compile(
    r"(?<![^\W_])(?<!/)(?:(?:final|correct)\s++(?:answer|result)|answers?|ans|"
    r"(?:correct|right)\s++(?:option|choice|alternative))(?![^\W_])(?:\.(?=\s*\S))?"
    r"(?:\s++(?:to|for|of)\s[^.:\n$]{1,80}?(?=\s(?:is|are)\b)|,\s[^.:,\n$]{1,60},(?=\s(?:is|are)\b))?"
    r"\}?\s*+(?:\*{1,3}|__?)?+\s*+(?:[:=]|\s[-–—](?=\s)|->|→|\bis\b|\bare\b|\bequals\b|"
    r"\b(?:will|should|must|has to) be\b|\bturns out to be\b|\bcomes (?:out )?to\b)"
    r"\s*+\}?+\s*+(?:\*{1,3}(?=\s|\Z)|\*\*|__?)?+\s*+:?\}?",
    re.IGNORECASE,
)
# a heading or a label of its own line: "**Final Answer**", "**Answer.** 5", "### Answer"
_HEADING = re.compile(
    r"^[#*_> \t]*\b(?:final[ \t]++answer|answer)\b[ \t]*+"
    r"(?:[.:]?(?:\*\*|__)[.:]?|[.:]?[ \t]*+$|\.)[ \t]*+",
    re.IGNORECASE | re.MULTILINE,
)
# a conclusion that emphasises its one value, in the last paragraph
_LOOSE = re.compile(
    r"(?:\b(?:is|are|equals)\b|=)\s*+(?:(?:therefore|thus|hence|simply|exactly|just)\s*+)?:?\s*+"
    r"(?P<value>\*\*[^*\n]{1,200}\*\*)",
    re.IGNORECASE,
)
# weaker words, where nothing else states an answer
_NAMED = re.compile(
    r"(?P<value>\$[^$\n]{1,80}\$|\*\*[^*\n]{1,80}\*\*|(?<![\w.,/^\\-])-?\d[\d,.]{0,30}(?:/\d{1,9})?)\s+"
    r"is\s+(?:(?:therefore|thus|hence|indeed|then)\s+)?(?:the|our|my)\s+(?:(?:final|correct|required|"
    r"desired)\s+)?answer\b",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:the|our|final)\s++(?:final\s++)?(?:result|solution)\s++(?:is|equals)\b(?!\s+(?:a|an|the|to)\b)|"
    r"^[ \t]*(?:result|solution)[ \t]*:(?=[ \t]*[-+$\\(]?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_HASHES = re.compile(r"^[ \t]*####[ \t]*(\S[^\n]*)$", re.MULTILINE)
_LETTER_LINE = re.compile(r"^[ \t]*A:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_MATH = re.compile(
    r"\$\$(?P<d>[^$]+)\$\$|\$(?P<s>(?:[^$\n\\]|\\.)+)\$|"
    r"\\\((?P<p>.+?)\\\)|\\\[(?P<b>.+?)\\\]",
    re.DOTALL,
)
_SENTENCE_END = re.compile(
    r"(?<![A-Z])\.(?=\s|$|\*|\"|\))|\n(?=\S)|\n[ \t]*+\n|[!?](?=\s|$)|\\\]|\\\)|</"
)
_TAIL = re.compile(
    r"[,;(]?\s*(?<!\bor )(?:\b(?:see|since|because|as|which|where|so|if|given|for|when|by|hence|"
    r"thus|therefore|that|but|due|after|assuming|i hope|meaning|i\.e|from|using|with|not|rather|"
    r"instead|though|although|however|yet|while|unless|depending|wait|hmm+|actually|"
    r"no(?=\s*[,.;:!]|\s+wait))\b|—|--|–\s|\(\s*or\b|(?<=\w)\s\([^()]*[A-Za-z]{3}[^()]*\)\s*\Z).*",
    re.IGNORECASE | re.DOTALL,
)
# what the answer is said to be, and isn't: a denial, or a remark about it
_NEGATED = re.compile(
    r"^\s*(?:(?:not|n't|never|consistent|reasonable|verified|confirmed|unique|independent|based|"
    r"obtained|derived|expressed|valid|correct|in (?:the|terms)|found (?:by|using|from))\b|"
    r"unknown|unclear|un?certain)",
    re.IGNORECASE,
)
_FILLED = re.compile(
    r"^(?:\s|:|\*\*|```[a-z]*+(?=\s)|(?:therefore|thus|hence|clearly|simply|indeed|exactly|approximately|about|"
    r"equal to|given by|found to be|definitely|probably|obviously|just|option|choice|"
    r"the final answer is|the answer is|answer is|answer:)\b:?)+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a statement says the answer is, the rule that found it, and its place."""

    value: str
    rule: str
    start: int
    end: int


def last_statement(text: str, *, marker: bool) -> Statement | None:
    """The last explicit statement; tags first, then markers, then words."""
    tagged = _tagged(text)
    if tagged is not None:
        return tagged
    if marker:
        found = marked(text)
        if found is not None:
            return found
    spoken = spoken_statement(text)
    if spoken is not None:
        return spoken
    said = said_right(text, lambda start: _asked(text, start))
    if said is not None:
        letters, start, end = said
        return Statement(", ".join(letters), "option said to be right", start, end)
    concluded = _concluded(text)
    if concluded is not None:
        return concluded
    paragraph = text.rstrip().rpartition("\n\n")[2]
    loose = list(_LOOSE.finditer(paragraph))
    if len(loose) == 1 and paragraph.count("**") == 2:
        offset = len(text.rstrip()) - len(paragraph)
        start, end = loose[0].start() + offset, loose[0].end() + offset
        return Statement(loose[0]["value"].strip("* "), "emphasised conclusion", start, end)
    return None


def _concluded(text: str) -> Statement | None:
    """Without a statement of an answer: `58 is the answer`, `the result is 58`, the last one."""
    named = list(_NAMED.finditer(text))
    if named:
        last = named[-1]
        return Statement(last["value"].strip("* "), "answer statement", last.start(), last.end())
    for match in reversed(list(_RESULT.finditer(text))[-MAX_TRIED:]):
        behind = text[match.end() : match.end() + MAX_STATEMENT]
        if not _NEGATED.match(behind) and not _asked(text, match.start()):
            value, used = stated_value(behind)
            if value:
                return Statement(value, "answer statement", match.start(), match.end() + used)
    return None


def earlier_statement(text: str, last: Statement, *, marker: bool) -> Statement | None:
    """The statement of the same sort before the last one; None for none."""
    before = text[: last.start]
    if last.rule == "answer tag":
        return _tagged(before)
    if last.rule == "answer statement":
        return spoken_statement(before)
    return marked(before) if marker and last.rule == "#### marker" else None


def marked(text: str) -> Statement | None:
    """`#### 42`, or a last line `A: 42` without other options beside it."""
    hashes = [match for match in _HASHES.finditer(text) if _number_like(match[1])]
    if hashes:
        last = hashes[-1]
        return Statement(last[1].strip(), "#### marker", last.start(), last.end())
    letters = list(_LETTER_LINE.finditer(text))
    if letters and not text[letters[-1].end() :].strip():
        last = letters[-1]
        if not re.search(r"^[ \t]*[B-E]:", text, re.MULTILINE):
            return Statement(last[1].strip(), "A: marker", last.start(), last.end())
    return None


def _number_like(value: str) -> bool:
    """A number with signs, separators and a short unit: a heading isn't one."""
    head = value.strip().strip("$*").lstrip("-+$€£\\ ")
    return (
        bool(head)
        and (head[0].isdigit() or head[0] in ".\\")
        and len(value) <= 80
        and not (re.match(r"\d+[.)]\s+\S", head))
    )


def _tagged(text: str) -> Statement | None:
    """The content of the last closed <answer> tag."""
    lower = text.lower()
    stop = lower.rfind("</answer>")
    start = lower.rfind("<answer>", 0, stop) if stop > 0 else -1
    if start < 0:
        return None
    value = text[start + len("<answer>") : stop].strip()
    return Statement(value, "answer tag", start, stop + len("</answer>"))


def spoken_statement(text: str) -> Statement | None:
    """The last statement in words; a negated or asked one states nothing."""
    return next(iter(spoken_statements(text)), None)


def spoken_statements(text: str) -> Iterator[Statement]:
    """The statements in words, the last one first."""
    matches = [*_WORDS.finditer(text), *_HEADING.finditer(text)]
    matches.sort(key=lambda match: (match.end(), -match.start()))
    for match in reversed(matches[-MAX_TRIED:]):
        behind = text[match.end() : match.end() + MAX_STATEMENT]
        if _NEGATED.match(behind) or _asked(text, match.start()):
            continue
        value, used = stated_value(behind)
        if value:
            yield Statement(value, "answer statement", match.start(), match.end() + used)


_ANOTHER = re.compile(r"\b(?:another|alternat\w+|second|other)(?:\s+\w+)?\s*+\Z")
# in the same sentence: supposed, asked, or doubted, so not stated
_SUPPOSED = re.compile(
    r"\b(?:suppos\w+|assum\w+|imagin\w+|pretend\w*|if|whether|unless|what|doubt\w*|"
    r"(?:unlikely|impossible) that|(?:not|n't|never) (?:\w+ ){0,2}(?:think|believe|say|claim|true|"
    r"clear|sure|certain|the case|likely|possible)|would be (?:wrong|false)|"
    r"(?:false|untrue) that)\b[^.,;:!?\n]{0,20}\Z"
)


def _asked(text: str, start: int) -> bool:
    """Whether the words state nothing: what the answer is, another answer is, an answer of ..."""
    before = text[max(0, start - 40) : start].lower()
    if _ANOTHER.search(before) or _SUPPOSED.search(before.replace("n't", " n't")):
        return True
    return before.rstrip().endswith(("what the", "whether the", "if the", "what is the", "wrong",
                                     "incorrect", "your", "not the"))  # fmt: skip


def stated_value(behind: str) -> tuple[str, int]:
    """The value that follows the words of a statement, and where it ends."""
    filled = _FILLED.match(behind)
    skipped = filled.end() if filled else 0
    rest = behind[skipped:]
    # a display may start on the next line; otherwise the value is in this sentence
    stripped = rest.lstrip()
    offset = skipped + len(rest) - len(stripped)
    math = _MATH.match(stripped)
    if math is not None:
        return _math_value(stripped, math, offset)
    display = re.match(r"\\\[|\\\(|\$\$?", stripped)
    if display is not None:
        stripped = stripped[display.end() :]
        offset += display.end()
    end = _SENTENCE_END.search(stripped)
    sentence = stripped[: end.start()] if end else stripped
    value, kept = _trimmed(sentence)
    return value, offset + kept


def _math_value(text: str, first: re.Match[str], offset: int) -> tuple[str, int]:
    """One formula, with formulas joined to it by commas, and, or, and a unit behind it."""
    end = first.end()
    while True:
        joint = re.compile(r"\s*(?:,\s*)?(?:and|or|,)\s*(?=\$|\\\()", re.IGNORECASE).match(
            text, end
        )
        if joint is None:
            break
        following = _MATH.match(text, joint.end())
        if following is None:
            break
        end = following.end()
    value = text[:end]
    unit = re.compile(
        r"\s*(?:\\text\{)?\s*([A-Za-z]+(?:\s+(?:per|feet|meters|inches|miles)[ a-z]*)?)"
    ).match(text, end)
    if unit is not None:
        from prime_verifier_math.units import known_word

        if known_word(unit[1].split()[0]):
            value += " \\text{" + unit[1] + "}"
            end = unit.end()
    hedge = re.compile(
        r"\s*,?\s*(?:or|and)\s+(?:maybe\s+|perhaps\s+|possibly\s+)?([^\s,.;]+)", re.IGNORECASE
    ).match(text, end)
    if hedge is not None and any(char.isdigit() or char in "\\$" for char in hedge[1]):
        value += " or " + hedge[1]
        end = hedge.end()
    return value, offset + end


_QUOTES = frozenset((('"', '"'), ("'", "'"), ("“", "”"), ("‘", "’")))


def _trimmed(sentence: str) -> tuple[str, int]:
    """Without emphasis, closing phrases and what a comma adds; and where the value ends."""
    lead = len(sentence) - len(sentence.lstrip())
    value = sentence.strip()
    bold = re.match(r"\*\*([^*]+)\*\*", value)
    if bold and not re.match(r"\s*(?:,\s*)?\b(?:or|and)\b", value[bold.end() :]):
        return bold[1].strip(), lead + bold.end()
    if len(value) > 2 and (value[0], value[-1]) in _QUOTES and value.count(value[0]) <= 2:
        return value[1:-1].strip(), lead + len(value)
    tail = _TAIL.search(value)
    if tail is not None and tail.start() > 0:
        value = value[: tail.start()]
    kept = len(value)
    value = value.strip().strip("*").strip().rstrip(",;")
    while value.endswith("}") and value.count("}") > value.count("{"):
        value = value[:-1].rstrip()  # of a group around the whole statement
    return value, lead + kept
