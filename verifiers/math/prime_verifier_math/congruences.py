r"""Residue classes: `x \equiv 3 \pmod 7`, `10 (mod 7)`; not `10 \bmod 7`, which is a number.

`read_congruence` is called by `reading.py` on tidied text, `same_class` by `comparison.py`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction

from prime_verifier_math.answers import Answer, Congruence, Value
from prime_verifier_math.tree import Num

_DRESS = re.compile(r"\\[ ,;:!]|\\(?:text|mathrm|operatorname)\b|[{}()~$\s]")
_CLASS = re.compile(
    r"(?:(?P<name>[A-Za-z])\\equiv)?(?P<residue>-?\d{1,40})(?:\\pmod|\\mod|mod)(?P<modulus>\d{1,40})"
)


def read_congruence(text: str) -> Congruence | None:
    """The residue class that a text names; None for anything else."""
    if "mod" not in text or len(text) > 200:
        return None
    found = _CLASS.fullmatch(_DRESS.sub("", text))
    modulus = int(found["modulus"]) if found else 0
    if found is None or modulus < 2:
        return None
    return Congruence(int(found["residue"]), modulus, found["name"] or "")


def same_class(one: Congruence, answer: Answer) -> tuple[bool, str]:
    """The same residues, of the same letter where both name one; or the least residue alone."""
    if isinstance(answer, Congruence):
        named = one.name == answer.name or not (one.name and answer.name)
        same = one.modulus == answer.modulus and not (one.residue - answer.residue) % one.modulus
        return same and named, "residue class"
    least = replace(one, residue=one.residue % one.modulus)
    return is_residue(one, answer) or is_residue(least, answer), "residue, the modulus left out"


def is_residue(one: Congruence, answer: Answer) -> bool:
    """Whether a number is the residue that the class was written with, and the least one."""
    node = answer.node if isinstance(answer, Value) and answer.unit is None else None
    least = 0 <= one.residue < one.modulus
    return least and isinstance(node, Num) and node.value == Fraction(one.residue)
