"""Formulas of logic: signs between propositions are symbols, between conditions they make a list.

Called by `reading.py` where \\land or \\lor stands at the top.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_verifier_math.answers import Answer, Equation, Opaque
from prime_verifier_math.splitting import cut, list_separator, relation, spelled
from prime_verifier_math.tokens import Token


def read_formula(made: Sequence[Token]) -> Answer | None:
    """A formula of logic, perhaps with a name in front; None for conditions and values."""
    equal = [index for index, token in enumerate(made) if relation(token)]
    first = cut(made, list_separator).parts[0]
    if len(equal) == 1 and made[equal[0]].is_op("=") and 0 < equal[0] < len(first) - 1:
        name, rest = made[: equal[0]], made[equal[0] + 1 :]
        if not _conditions(rest):
            formula = Opaque(_squeezed(rest), "a formula of logic")
            return Equation(spelled(name).replace(" ", ""), formula, None)
        return None
    return None if _conditions(made) else Opaque(_squeezed(made), "a formula of logic")


def _conditions(made: Sequence[Token]) -> bool:
    """Whether signs of logic join conditions or values of one name, not propositions.

    `x = 2 \\lor x = 3` is a list of values, `x = 2 \\land x = 3` is none.
    """
    parts = cut(made, list_separator).parts
    both = any(token.is_cmd("land") for token in made)
    if all(any(relation(token) for token in part) for part in parts):
        names = {spelled(cut(part, relation).parts[0]).strip() for part in parts}
        equal = all(any(token.is_op("=") for token in part) for part in parts)
        return not (both and equal and len(names) == 1)
    letters = any(token.kind in ("let", "word", "text") for part in parts for token in part)
    return not both and not (letters and not any(relation(token) for token in parts[0]))


def _squeezed(made: Sequence[Token]) -> str:
    """The tokens with their commands under one name each: \\wedge and \\land are one writing."""
    written = (f"\\{token.text} " if token.kind == "cmd" else token.text for token in made)
    return "".join("".join(written).split())
