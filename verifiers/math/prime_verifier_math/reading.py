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
    Based,
    Choice,
    Colon,
    Equation,
    Listing,
    Opaque,
    Ordered,
    Region,
    Text,
    Value,
)
from prime_verifier_math.bounds import (
    MAX_ITEMS,
    MAX_RAW_CHARS,
    OverBound,
    Steps,
    Undefined,
    Unreadable,
)
from prime_verifier_math.expressions import parse_expression
from prime_verifier_math.lexer import Token, tokens
from prime_verifier_math.literals import join_groups
from prime_verifier_math.splitting import (
    cut,
    depth_change,
    list_separator,
    relation,
    spelled,
    whole_bracket,
)
from prime_verifier_math.values import read_value
from prime_verifier_math.vocabulary import FILLERS, RESTATED, is_text
from prime_verifier_math.writing import tidy

_BASED = re.compile(
    r"(?P<sign>[-+]?)\s*\(?\s*(?P<digits>[0-9][0-9A-Za-z.]*|[A-Z][0-9A-Z]*[0-9][0-9A-Z]*)\s*\)?\s*"
    r"(?:_\s*\{?\s*\(?\s*(?P<base>\d{1,2}|[a-z]+)\s*\)?\s*\}?"
    r"|\(?\s*(?:in\s+)?base\s*-?\s*(?P<named>\d{1,2}|[a-z]+)\s*\)?)\s*\.?"
)
_BASE_NAMES = {
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "sixteen": 16, "b": 2, "h": 16, "bin": 2, "hex": 16,
    "oct": 8, "dec": 10,
}  # fmt: skip
_WRAPPED = re.compile(r"\\(?:text|mathrm|textbf|mathbf|textnormal|mbox|rm)\s*\{([^{}]*)\}")


def read_answer(text: str, *, commas: bool = True) -> Answer:
    """The typed answer of a text; `commas` says whether `1,234` is one number."""
    if len(text) > MAX_RAW_CHARS:
        return Opaque("", "longer than an answer may be")
    text = _trimmed(tidy(text))
    if not text:
        return Opaque("", "empty")
    based = _read_based(text)
    if based is not None:
        return based
    choice = _read_choice(text)
    if choice is not None:
        return choice
    try:
        answer = read_tokens(tokens(join_groups(text, commas=commas)))
    except (Unreadable, Undefined) as problem:
        answer = _words_or_opaque(text, str(problem))
    except OverBound as problem:
        answer = Opaque(_squeezed(text), f"over a bound: {problem}")
    if isinstance(answer, Opaque) and not answer.text:
        return Opaque(_squeezed(text), answer.reason)
    return answer


def _trimmed(text: str) -> str:
    """Without punctuation at the ends; a point before digits and three dots behind them stay."""
    text = text.lstrip(" \n\t;:,").rstrip(" \n\t;:,")
    return text[:-1].rstrip() if text.endswith(".") and not text.endswith("..") else text


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _words_or_opaque(text: str, reason: str) -> Answer:
    """Words where the text is words; otherwise the writing itself."""
    unwrapped = _WRAPPED.sub(r" \1 ", text)
    if "\\" not in unwrapped and any(char.isalpha() for char in unwrapped):
        if not any(char in unwrapped for char in "=^_<>"):
            return wording.read_words(unwrapped)
    return Opaque(_squeezed(text), reason)


def _read_based(text: str) -> Based | None:
    """Digits with a base behind them: 101_2, A5_{11}, 12 (base 8)."""
    if "_" not in text and "base" not in text:
        return None
    match = _BASED.fullmatch(_WRAPPED.sub(r"\1", text).strip())
    if match is None:
        return None
    name = match["base"] or match["named"]
    base = int(name) if name.isdigit() else _BASE_NAMES.get(name)
    digits = match["digits"].upper().lstrip("0") or "0"
    if base is None or not 2 <= base <= 36 or digits.count(".") > 1:
        return None
    if any(int(digit, 36) >= base for digit in digits if digit != "."):
        return None
    return Based(digits, base, match["sign"] == "-")


def _read_choice(text: str) -> Choice | None:
    """A choice letter with or without what it stands for: (C), C. 42, \\textbf{(C)} 42."""
    if len(text) > 300:
        return None
    plain = _WRAPPED.sub(r"\1", text).strip()
    if re.fullmatch(r"\(?[A-Z]\)?\.?", plain):
        return Choice(plain.strip("()."))
    if re.match(r"(?:option|choice|answer)?\s*\(?[A-Z][).:]", plain, re.IGNORECASE):
        if re.match(r"\([A-Z]\)\s*[-+*/^_=(]|\(?[A-Z][).:]?\s*(?:\\|[-+=^])", plain):
            if "\\text" not in text:
                return None
        return wording.choice_of(plain)
    return wording.choice_of(plain) if plain.lower().startswith(("option", "choice")) else None


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

    region = regions.read_region(made)
    if region is not None:
        return region
    if whole_bracket(made):
        bracketed = _read_bracket(made)
        if bracketed is not None:
            return bracketed
    colon = cut(made, lambda token: ":" if token.is_op(":") or token.is_cmd(":") else None)
    if colon.separators:
        return _read_colon(colon.parts)
    return read_value(made)


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
        announces = words[-1] in _ANNOUNCING and "not" not in words
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


def _text_with_number(made: Sequence[Token]) -> Answer | None:
    """\\text{18 dollars}: one text that begins like a number is read as mathematics."""
    text = made[0].text.strip() if len(made) == 1 and made[0].kind == "text" else ""
    if not text or not (text[0].isdigit() or text[0] in "-+$."):
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
    if all(isinstance(item, Region) for item in items):
        from prime_verifier_math import regions

        return regions.joined([item for item in items if isinstance(item, Region)], kind)
    return _shared_label(items, kind)


def _shared_label(items: list[Answer], kind: str) -> Answer:
    """`n = 2, 3, 4` and `x = 2 or x = 3` are one list with one label."""
    first = items[0]
    if isinstance(first, Equation) and first.label is not None:
        rest = items[1:]
        if not any(isinstance(item, Equation) for item in rest):
            listing = Listing((first.right, *rest), kind)
            return Equation(first.label, listing, None)
        equations = [item for item in items if isinstance(item, Equation) and item.label]
        labels = {(item.label or "").partition("_")[0] for item in equations}
        if len(equations) == len(items) and len(labels) == 1:
            listing = Listing(tuple(item.right for item in equations), kind)
            return Equation(labels.pop(), listing, None)
    return Listing(tuple(items), kind)


def _read_bracket(made: Sequence[Token]) -> Answer | None:
    """A tuple, an interval, a set, or a choice in parentheses; None for a bracketed expression."""
    opening, closing = made[0], made[-1]
    inner = made[1:-1]
    if opening.is_cmd("{"):
        return _read_set(inner)
    pieces = cut(inner, lambda token: "," if token.is_op(",;") else None)
    if len(pieces.parts) > 1:
        if len(pieces.parts) > MAX_ITEMS:
            raise OverBound("too many items")
        items, dots = [], []
        for part in pieces.parts:
            if part and all(token.is_cmd("ldots") for token in part):
                dots.append(len(items))
            else:
                items.append(read_tokens(part))
        left = "<" if opening.text == "langle" else opening.text
        right = ">" if closing.text == "rangle" else closing.text
        if dots:
            return Listing(tuple(items), "list", tuple(dots))
        return Ordered(left, tuple(items), right)
    if len(inner) == 1 and opening.is_op("(") and inner[0].kind in ("let", "text"):
        letter = inner[0].text.strip()
        if len(letter) == 1 and letter.isalpha():
            return Choice(letter.upper())
    if opening.is_op("(") and closing.is_op(")"):
        return read_tokens(inner)
    if opening.is_op("[") and closing.is_op("]"):
        return Ordered("[", (read_tokens(inner),), "]")
    return None


def _read_set(inner: Sequence[Token]) -> Answer:
    """The members between set braces, or the condition of a set builder."""
    if not inner:
        return Listing((), "set")
    builder = cut(
        inner,
        lambda t: "|" if t.is_op("|:") or t.is_cmd("mid", "|", ":") else None,
    )
    if len(builder.parts) == 2 and any(relation(token) for token in builder.parts[1]):
        return read_tokens(builder.parts[1])
    members = read_tokens(inner)
    if isinstance(members, Listing) and members.kind != "set":
        return Listing(members.items, "list" if members.dots else "set", members.dots)
    if isinstance(members, Equation):
        members = members.right
        if isinstance(members, Listing):
            return Listing(members.items, "set")
    return Listing((members,), "set")


_HALVES = {"am": "am", "pm": "pm"}


def _read_colon(parts: list[list[Token]]) -> Answer:
    """A time of day or a ratio."""
    half = ""
    last = parts[-1]
    start = next(
        (i for i, token in enumerate(last) if i and token.kind in ("text", "word", "let")),
        len(last),
    )
    tail = spelled(last[start:]).lower().replace(".", "").replace(" ", "")
    if tail in _HALVES:
        half = _HALVES[tail]
        parts = [*parts[:-1], last[:start]]
    if any(not part for part in parts) or len(parts) > 6:
        raise Unreadable("a colon without numbers around it")
    words = [token for part in parts for token in part if token.kind == "text"]
    if words:
        raise Unreadable("a colon between words")
    return Colon(tuple(parse_expression(part) for part in parts), half)


def constant_text(answer: Answer) -> bool:
    """Whether an answer is in words."""
    return isinstance(answer, Text)


__all__ = ["Steps", "constant_text", "depth_change", "read_answer", "read_tokens"]
