"""Tokens of LaTeX and plain text: numbers, commands, letters, words, texts, single characters.

`tokens` is the only entry; it drops redundant brackets and refuses what is too long, before any
parser runs.
"""

from __future__ import annotations

import itertools
import re

from prime_verifier_math.bounds import MAX_DEPTH, MAX_TOKENS, OverBound
from prime_verifier_math.infix import prefixed
from prime_verifier_math.outward import round_ends
from prime_verifier_math.tokens import Token
from prime_verifier_math.vocabulary import FUNCTIONS, JOINERS, RENAMED, TEXT_COMMANDS, WORD_COMMANDS

# signs in a text: \text{½} is \text{\frac{1}{2}} here; a text in a text stays words, so that no
# nesting recurses
_COMMAND = re.compile(rf"\\(?!(?:{'|'.join(sorted(TEXT_COMMANDS))})(?![A-Za-z]))[A-Za-z]+")


_TOKEN = re.compile(
    r"(?P<space>\s+|~|\\[,;: !](?!\d?,))"
    r"|\\(?P<cmd>[A-Za-z]+)\*?"
    r"|(?P<row>\\\\(?:\[[^\]\\]{0,12}\])?)"
    r"|\\(?P<escaped>.)"
    r"|(?P<num>(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+(?![\d.]))?)"
    r"|(?P<word>[A-Za-z]+)"
    r"|(?P<op>.)",
    re.DOTALL,
)
# what follows a \sim that means "roughly": a number, perhaps signed or as a command
_ROUGHLY = re.compile(r"[\s{$]*+[-+]?[\d.\\]")


def tokens(text: str) -> list[Token]:
    """The tokens of a tidied text; raises `OverBound` where there are too many."""
    made = _scan(text)
    if "\\over" in text or "\\choose" in text:
        made = prefixed(made)
    if "[" in text or "]" in text:
        made = round_ends(made)
    made = _without_redundant_brackets(made)
    if len(made) > MAX_TOKENS:
        raise OverBound("too many tokens")
    depth = 0
    for token in made:
        if token.is_op("{(["):
            depth += 1
        elif token.is_op("})]"):
            depth -= 1
        if depth > MAX_DEPTH:
            raise OverBound("nested too deeply")
    return made


def _scan(text: str) -> list[Token]:
    made: list[Token] = []
    position, end = 0, len(text)
    space = False
    while position < end:
        match = _TOKEN.match(text, position)
        assert match is not None, "the last alternative takes any character"
        position = match.end()
        kind = match.lastgroup
        if kind == "space":
            space = True
            continue
        value = match[kind] if kind else match[0]
        if kind == "cmd":
            if value in TEXT_COMMANDS and position < end:
                content, position = _argument(text, position)
                _add_text(made, content, space, value)
            elif value == "sim" and not _ROUGHLY.match(text, position):
                made.append(Token("cmd", value, space))  # a relation or a negation
            else:
                _add_command(made, value, space)
        elif kind == "word":
            _add_word(made, value, space)
        elif kind == "row":
            made.append(Token("op", "\\", space))
        elif kind == "escaped":
            made.append(Token("op" if value not in "$%{}|" else "cmd", value, space))
        else:
            made.append(Token(kind or "op", value, space))
        space = False
    return made


def _argument(text: str, position: int) -> tuple[str, int]:
    """The braced argument at `position` and where it ends; one character without braces."""
    while position < len(text) and text[position] == " ":
        position += 1
    if position >= len(text):
        return "", position
    if text[position] != "{":
        return text[position], position + 1
    depth = 0
    for index in range(position, len(text)):
        char = text[index]
        if char == "{":
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                return text[position + 1 : index], index + 1
    return text[position + 1 :], len(text)


def _add_text(made: list[Token], content: str, space: bool, command: str) -> None:
    """A text argument: a joiner, a function name, plain mathematics, or words."""
    stripped = content.strip().strip(",;").strip().lower()
    if stripped in JOINERS:
        made.append(Token("join", stripped, True))
    elif command == "operatorname" or (stripped in WORD_COMMANDS and stripped != "min"):
        _add_word(made, content.strip(), space)
    elif any(char.isalpha() for char in _COMMAND.sub("", content)) and (
        command not in ("mathbf", "boldsymbol", "mathcal", "bm") or len(stripped) > 1
    ):
        before, _, last = content.strip().rpartition(" ")
        if last.lower() in JOINERS and len(before.split()) == 1:
            # \\text{ hours and }: a unit and a joiner
            made.append(Token("text", before.rstrip(","), space))
            made.append(Token("join", last.lower(), True))
        else:
            made.append(Token("text", content, space))
    elif any(char.isalnum() for char in _COMMAND.sub("", content)):
        made.append(Token("op", "{", space))
        made.extend(_scan(content))
        made.append(Token("op", "}"))
    else:
        made.extend(_scan(content))


def _add_command(made: list[Token], name: str, space: bool) -> None:
    """A command under its one name; `\\cotx` is `\\cot x`."""
    name = RENAMED.get(name, name)
    if name in ("text", "displaystyle", ""):
        return
    if name not in FUNCTIONS and name[:-1] in FUNCTIONS and name not in WORD_COMMANDS.values():
        made.append(Token("cmd", name[:-1], space))
        made.append(Token("let", name[-1]))
        return
    made.append(Token("cmd", name, space))


def _add_word(made: list[Token], word: str, space: bool) -> None:
    """A run of letters: a function or constant, a joiner, one letter, or a word."""
    lower = word.lower()
    if len(word) == 1:
        made.append(Token("let", word, space))
    elif word == "min" and made and (made[-1].kind == "num" or made[-1].is_op("}")):
        made.append(Token("word", word, space))  # minutes
    elif word in WORD_COMMANDS or lower in ("infinity", "inf"):
        made.append(Token("cmd", WORD_COMMANDS.get(word, "infty"), space))
    elif lower in JOINERS:
        made.append(Token("join", lower, True))
    else:
        made.append(Token("word", word, space))


_PAIRS = {"{": "}", "(": ")"}


def _without_redundant_brackets(made: list[Token]) -> list[Token]:
    """Drop `{` and `(` that directly enclose another pair of their kind, in one pass."""
    if not any(
        first.kind == second.kind == "op" and first.text == second.text and first.text in "{("
        for first, second in itertools.pairwise(made)
    ):
        return made
    partner: dict[int, int] = {}
    open_at: list[int] = []
    for index, token in enumerate(made):
        if token.is_op("{(["):
            open_at.append(index)
        elif token.is_op("})]") and open_at:
            start = open_at.pop()
            if _PAIRS.get(made[start].text) == token.text:
                partner[start] = index
    dropped: set[int] = set()
    for start, stop in partner.items():
        if partner.get(start + 1) == stop - 1 and made[start].text == made[start + 1].text:
            dropped.update((start, stop))
    return [token for index, token in enumerate(made) if index not in dropped]
