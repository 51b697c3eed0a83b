"""Numbers as people write them: grouped digits, decimal commas, repeating decimals.

`join_groups` runs on the text before tokens are made; `repeating` gives the exact value of a
decimal whose block repeats. Regexes here have no nested choice and run in linear time.
"""

from __future__ import annotations

import re
from fractions import Fraction

# {,}  ,\!  \,  \;  \:  \(space)  ~  space  apostrophe: what stands between groups of three digits
_SAFE = r"(?:\{,\}\s?|,\\!\s*|\\[,;: ]\s?|~|\s|')"
_GROUPED = re.compile(rf"(?<![\d.,/!])(\d{{1,3}})((?:{_SAFE}\d{{3}})+)(?![\d/]|\\!\d|\.\d{{3}}\.)")
_COMMAS = re.compile(r"(?<![\d.,])(\d{1,3})((?:,\d{3})+)(?![\d]|,\d)")
_DOTS = re.compile(r"(?<![\d.,])(\d{1,3}(?:\.\d{3}){2,})(,\d+)?(?![\d.,])")
_DOTS_COMMA = re.compile(r"(?<![\d.,])(\d{1,3}\.\d{3}),(\d{1,2}|\d{4,})(?![\d.,])")
_DECIMAL_COMMA = re.compile(r"(?<=\d)\{,\}(?=\d)")
_NOT_DIGITS = re.compile(r"\D+")


def join_groups(text: str, *, commas: bool) -> str:
    """Join digits that are written in groups of three.

    `commas` also joins `1,234` (a plain comma without a space) where it doesn't stand inside
    parentheses, brackets or braces of a set; the other separators can't mean a list.
    """
    if "{,}" in text or "\\" in text or " " in text or "~" in text or "'" in text:
        text = _GROUPED.sub(_joined, text)
    if "." in text:
        text = _DOTS.sub(lambda m: m[1].replace(".", "") + (m[2] or "").replace(",", "."), text)
        text = _DOTS_COMMA.sub(lambda m: m[1].replace(".", "") + "." + m[2], text)
    if "," in text:
        if commas:
            text = _join_commas(text)
        text = _DECIMAL_COMMA.sub(".", text).replace(",\\!", ",")
    return text.replace("\\!", "")


def _joined(match: re.Match[str]) -> str:
    return match[1] + _NOT_DIGITS.sub("", match[2])


def _join_commas(text: str) -> str:
    """Join `1,234` outside brackets."""
    parts: list[str] = []
    depth = position = 0
    for match in _COMMAS.finditer(text):
        before = text[position : match.start()]
        depth += sum(before.count(char) for char in "([") - sum(before.count(c) for c in ")]")
        depth += before.count("\\{") - before.count("\\}")
        parts.append(before)
        parts.append(match[0].replace(",", "") if depth <= 0 else match[0])
        position = match.end()
    parts.append(text[position:])
    return "".join(parts)


def repeating(whole: str, fixed: str, block: str) -> Fraction:
    """The value of whole.fixed(block) with the block repeated for ever; all are digit strings."""
    if not block:
        return Fraction(int((whole or "0") + fixed), 10 ** len(fixed))
    head = int((whole or "0") + fixed)
    nines = 10 ** len(block) - 1
    return Fraction(head * nines + int(block), nines * 10 ** len(fixed))


def repeated_block(decimals: str) -> tuple[str, str] | None:
    """Split decimals such as `1666` (before dots) into the fixed part and the block.

    The block is the shortest that stands at least twice at the end, and covers at least two
    digits; None where nothing repeats.
    """
    for size in range(1, len(decimals) // 2 + 1):
        block = decimals[-size:]
        if decimals[-2 * size : -size] == block:
            fixed = decimals
            while fixed.endswith(block):
                fixed = fixed[:-size]
            return fixed, block
    return None
