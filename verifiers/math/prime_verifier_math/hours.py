r"""Whole hours of the day: `6 PM`, `6\text{ p.m.}` and `\text{6 pm}` are 6:00 pm.

Called by `reading.py` on tidied text. `6pm` with nothing between stays a product of letters.
"""

from __future__ import annotations

import re

from prime_verifier_math import tree
from prime_verifier_math.answers import Colon
from prime_verifier_math.tree import Num

_HOUR = re.compile(
    r"(?:\\(?:text|mathrm|textrm|mbox)\s*\{\s*)?(?P<hour>\d{1,2})"
    r"(?:\s+|\s*\\[ ,;:]\s*|\s*~\s*|\s*(?=\\)|(?=[AP]\.?\s?M))"
    r"(?:\\(?:text|mathrm|textrm|mbox)\s*\{\s*)?(?P<half>[AaPp])\.?\s?[Mm]\.?\s*\}?"
)


def read_hour(text: str) -> Colon | None:
    """The hour that a text names with its half of the day; None for anything else."""
    found = _HOUR.fullmatch(text)
    if found is None or text.count("{") != text.count("}") or not 1 <= int(found["hour"]) <= 12:
        return None
    half = f"{found['half'].lower()}m"
    return Colon((tree.integer(int(found["hour"])), tree.integer(0)), half)


def hour_alone(time: Colon) -> Num | None:
    """The hour of a whole hour with its half of the day, for values that leave the half out."""
    hour, *rest = time.parts
    whole = time.half and rest == [tree.integer(0)] and isinstance(hour, Num)
    return hour if whole and isinstance(hour, Num) else None
