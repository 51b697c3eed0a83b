"""From a text to a typed answer: the grammar above expressions.

`read_answer` never raises: what can't be read is `Opaque`, with the reason. The order of the
attempts below is the grammar: lists, relations, sets, brackets, colons, values, words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from prime_verifier_math import tree, wording
from prime_verifier_math.answers import (
    Answer,
    Choice,
    Equation,
    Listing,
    Opaque,
    Region,
    Value,
)
from prime_verifier_math.bounds import (
    MAX_ITEMS,
    MAX_RAW_CHARS,
    OverBound,
    Undefined,
    Unreadable,
)
from prime_verifier_math.congruences import read_congruence
from prime_verifier_math.domains import without_domain
from prime_verifier_math.hours import read_hour
from prime_verifier_math.lexer import tokens
from prime_verifier_math.literals import join_groups
from prime_verifier_math.marks import WRAPPED, letter_outside, read_based, read_choice
from prime_verifier_math.splitting import (
    cut,
    list_separator,
    relation,
    spelled,
    whole_bracket,
)
from prime_verifier_math.tokens import Token
from prime_verifier_math.values import read_value, summed
from prime_verifier_math.vocabulary import FILLERS, RESTATED, is_text
from prime_verifier_math.writing import tidy


def read_answer(text: str, *, commas: bool = True) -> Answer:
    """The typed answer of a text; `commas` says whether `1,234` is one number."""
    if len(text) > MAX_RAW_CHARS:
        return Opaque("", "longer than an answer may be")
    outside = letter_outside(text)
    text = without_domain(trimmed(tidy(text)))
    if not text:
        return Opaque("", "empty")
    digits = read_based(text) or read_hour(text) or read_congruence(text)
    if digits is not None:
        return digits
    choice = wording.choice_of(text) if outside else read_choice(text)
    if choice is not None:
        return choice
    try:
        answer = read_tokens(tokens(join_groups(text, commas=commas)))
    except (Unreadable, Undefined) as problem:
        answer = _words_or_opaque(text, str(problem))
    except OverBound as problem:
        answer = Opaque("".join(text.split()), f"over a bound: {problem}")
    if isinstance(answer, Opaque) and not answer.text:
        return Opaque("".join(text.split()), answer.reason)
    return answer


_LEADING = re.compile(r"(?:\s|\\[,;:! ]|[,;:~])++")
_GAP_ENDS = ("\\,", "\\;", "\\:", "\\!")


def trimmed(text: str) -> str:
    """Without punctuation at the ends; a point before digits and three dots behind them stay."""
    leading = _LEADING.match(text)
    text = text[leading.end() :] if leading else text
    while True:
        short = text.rstrip(" \n\t~")
        if short.endswith(_GAP_ENDS):
            short = short[:-2]
        elif short.endswith((",", ";", ":")):
            short = short[:-1]
        elif short.endswith("\\") and not short.endswith("\\\\"):
            short = short[:-1]  # a control space that lost its space
        elif short.endswith(".") and not short.endswith(".."):
            short = short[:-1]
        if short == text:
            return text
        text = short


def _words_or_opaque(text: str, reason: str) -> Answer:
    """Words where the text is words; otherwise the writing itself."""
    unwrapped = WRAPPED.sub(r" \1 ", text)
    if (
        "\\" not in unwrapped
        and any(char.isalpha() for char in unwrapped)
        and not any(char in unwrapped for char in "=^_<>")
    ):
        return wording.read_words(unwrapped)
    return Opaque("".join(text.split()), reason)


def read_tokens(made: Sequence[Token]) -> Answer:
    """The typed answer of tokens; raises `Unreadable`, `Undefined` or `OverBound`."""
    made = _without_fillers(_without_ends(made))
    if not made:
        raise Unreadable("nothing there")
    words = _only_words(made)
    if words is not None:
        return words
    if any(token.is_cmd("begin") for token in made):
        from prime_verifier_math.matrices import read_matrix

        whole = read_matrix(made)
        if whole is not None:
            return whole
    if any(token.kind == "cmd" and token.text in RESTATED for token in made):
        raise Unreadable("a question restated, not an answer")
    pieces = cut(made, list_separator)
    if pieces.separators:
        if any(token.is_cmd("land", "lor") for token in made):
            from prime_verifier_math.logic import read_formula

            formula = read_formula(made)
            if formula is not None:
                return formula
        return _read_list(pieces.parts, "or" if "or" in pieces.separators else "list")
    if any(relation(token) for token in made):
        from prime_verifier_math.relations import read_relation

        related = read_relation(made)
        if related is not None:
            return related
    return _read_single(made)


def _read_single(made: Sequence[Token]) -> Answer:
    """One answer without commas and relations at the top."""
    from prime_verifier_math import regions
    from prime_verifier_math.brackets import read_bracket, read_colon

    region = regions.read_region(made)
    if region is not None:
        return region
    if whole_bracket(made):
        bracketed = read_bracket(made)
        if bracketed is not None:
            return bracketed
    colon = cut(made, _colon)
    if colon.separators:
        return read_colon(colon.parts)
    return read_value(made)


def _colon(token: Token) -> str | None:
    """A colon, or the word between the parts of a ratio: 3 to 5, 3 is to 5."""
    if token.kind in ("text", "word"):
        return ":" if " ".join(token.text.lower().split()) in ("to", "is to") else None
    return ":" if token.is_op(":") or token.is_cmd(":") else None


def _without_ends(made: Sequence[Token]) -> Sequence[Token]:
    """Without a group around everything, and without a full stop behind it."""
    while made:
        if made[-1].is_op(".,;:") or made[-1].kind == "join":
            made = made[:-1]
        elif made[0].is_op("{") and whole_bracket(made):
            made = made[1:-1]
        elif made[0].is_op(":,.") and not (len(made) > 1 and made[1].kind == "num"):
            made = made[1:]
        else:
            return made
    return made


_ANNOUNCING = frozenset((":", "is", "are", "equals", "be", "was", "approximately", "about"))


def _without_fillers(made: Sequence[Token]) -> Sequence[Token]:
    """Without words that only announce the answer: The answer is 21."""
    end = 0
    while end < len(made) and made[end].kind in ("text", "word"):
        end += 1
    if 0 < end < len(made):
        said = " ".join(token.text for token in made[:end]).lower()
        words = said.replace(":", " : ").split()
        if all(word.strip(" :,.") in FILLERS | {""} for word in words):
            return _without_ends(made[end:])
        announces = words[-1] in _ANNOUNCING and not any(wording.denies(word) for word in words)
        if announces and all(token.kind == "text" for token in made[:end]):
            return _without_ends(made[end:])
    return made


def _only_words(made: Sequence[Token]) -> Answer | None:
    """The answer in words, where there is nothing else; products of letters are expressions."""
    kinds = {token.kind for token in made}
    if kinds <= {"text", "word", "let", "join"} and ("text" in kinds or "word" in kinds):
        if len(made) == 1 and made[0].kind == "text" and len(made[0].text.strip()) == 1:
            letter = made[0].text.strip()
            return Choice(letter) if letter.isupper() else None
        if len(made) == 1 and made[0].kind == "word" and not is_text(made[0].text):
            return None
        if "text" not in kinds and not any(
            token.kind == "word" and is_text(token.text) for token in made
        ):
            return None
        inner = _text_with_number(made)
        if inner is not None:
            return inner
        said = wording.plain(spelled(made))
        if said.casefold() in wording.INFINITE:
            return Value(tree.INFINITY)
        if said.casefold() in ("negative infinity", "minus infinity", "-infinity"):
            return Value(tree.negate(tree.INFINITY))
        if said.casefold() in wording.EVERYTHING:
            from prime_verifier_math.regions import EVERYTHING

            return Region((EVERYTHING,))
        return wording.read_words(spelled(made))
    if kinds == {"let"} and len(made) == 1 and made[0].text.isupper():
        return Choice(made[0].text)
    return None


_RELATED = re.compile(r"[=<>]|\\(?:le|ge|lt|gt|leq|geq|ne|neq|in|approx)(?![A-Za-z])")


def _text_with_number(made: Sequence[Token]) -> Answer | None:
    """\\text{18 dollars}, \\text{x = 5}: a text that is mathematics is read as such."""
    text = made[0].text.strip() if len(made) == 1 and made[0].kind == "text" else ""
    if not text or not (text[0].isdigit() or text[0] in "-+$." or _RELATED.search(text)):
        return None
    try:
        return read_tokens(tokens(join_groups(tidy(text), commas=True)))
    except (Unreadable, Undefined):
        return None


def _read_list(parts: list[list[Token]], kind: str) -> Answer:
    """Answers side by side; labels are shared, regions joined."""
    items: list[Answer] = []
    dots: list[int] = []
    for part in parts:
        if all(token.is_cmd("ldots") or token.is_op(".") for token in part):
            if part and (part[0].kind == "cmd" or len(part) >= 3):
                dots.append(len(items))
            continue
        items.append(read_tokens(part))
        if len(items) > MAX_ITEMS:
            raise OverBound("too many items")
    if len(items) == 1 and not dots:
        return items[0]
    if not items:
        raise Unreadable("an empty list")
    if dots:
        return Listing(tuple(items), "list", tuple(dots))
    if kind == "or" and any(isinstance(item, Region) for item in items):
        from prime_verifier_math import regions

        items = [regions.point_of(item) or item for item in items]
    if all(isinstance(item, Region) for item in items):
        from prime_verifier_math import regions

        return regions.joined([item for item in items if isinstance(item, Region)], kind)
    compound = summed(items) if kind == "list" else None
    return compound or _shared_label(items, kind)


def _shared_label(items: list[Answer], kind: str) -> Answer:
    """`n = 2, 3, 4` and `x = 2 or x = 3` are one list with one label."""
    first = items[0]
    if isinstance(first, Equation) and first.label is not None:
        rest = items[1:]
        if not any(isinstance(item, Equation) for item in rest):
            listing = Listing((first.right, *rest), kind)
            return Equation(first.label, listing, None)
        equations = [item for item in items if isinstance(item, Equation) and item.label]
        labels = {_unnumbered(item.label or "") for item in equations}
        if len(equations) == len(items) and len(labels) == 1:
            listing = Listing(tuple(item.right for item in equations), kind)
            return Equation(labels.pop(), listing, None)
    return Listing(tuple(items), kind)


_ROOT = re.compile(r"([k-nr-tw-z]|\\lambda)_\w+")  # of an unknown; a_1 and S_1 belong to sequences


def _unnumbered(label: str) -> str:
    """x for x_1, whose number says nothing: the roots of an equation have no order."""
    numbered = _ROOT.fullmatch(label)
    return numbered[1] if numbered else label
