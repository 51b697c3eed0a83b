"""Whether an answer is the gold answer: one rule a type, chosen by the gold's type.

`same_answer` is symmetric only where the types are; coercions from other types to the gold's are
listed here and in docs/reference/math-rules.md, and everything else is wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from prime_verifier_math import tree
from prime_verifier_math.answers import (
    Absent,
    Answer,
    Based,
    Boolean,
    Choice,
    Colon,
    Congruence,
    Equation,
    Listing,
    Matrix,
    Opaque,
    Ordered,
    Region,
    Relation,
    Text,
    Value,
)
from prime_verifier_math.bounds import OverBound, Steps, Undefined
from prime_verifier_math.congruences import is_residue, same_class
from prime_verifier_math.containers import (
    kind,
    same_listing,
    same_matrix,
    same_ordered,
    same_set,
    unlabelled,
)
from prime_verifier_math.equality import same_value
from prime_verifier_math.hours import hour_alone
from prime_verifier_math.names import other_symbol
from prime_verifier_math.quantities import same_quantity
from prime_verifier_math.tree import Num, Sym

Verdict = tuple[bool, str]
MIN_WORD = 5  # letters from which capitals alone are a way of writing a word


def same_answer(gold: Answer, answer: Answer, steps: Steps) -> Verdict:
    """The verdict and the name of the rule that decided; never raises."""
    if gold == answer and not isinstance(gold, Opaque):
        return True, "the same form"
    try:
        return _RULES[type(gold)](gold, answer, steps)
    except OverBound as problem:
        return False, f"bound: {problem}"
    except Undefined as problem:
        return False, f"undefined: {problem}"


def _value(gold: Value, answer: Answer, steps: Steps) -> Verdict:
    if isinstance(answer, Equation):
        return _labelled_value(gold, answer, steps)
    if isinstance(answer, Value):
        return same_quantity(gold, answer, steps)
    if isinstance(answer, Based):
        return _digits_value(gold, answer)
    if isinstance(answer, Choice):
        letter = gold.node
        return isinstance(letter, Sym) and letter.name == answer.letter, "symbol"
    if isinstance(answer, Listing) and answer.kind == "pm" and len(answer.items) == 2:
        both = [same_answer(gold, item, steps)[0] for item in answer.items]
        return all(both), "plus-minus against one value"
    if isinstance(answer, Congruence):
        return not answer.name and is_residue(answer, gold), "residue, a modulus added"
    if isinstance(answer, Colon) and (hour := hour_alone(answer)) is not None:
        plain = gold.unit is None and same_value(gold.node, hour, steps)[0]
        return plain, "hour, am or pm added"
    if isinstance(answer, Colon) and len(answer.parts) == 2:
        return False, "a ratio isn't a number"
    return False, f"{kind(answer)} against a value"


def _labelled_value(gold: Value, answer: Equation, steps: Steps) -> Verdict:
    """x = 3 for 3; f(x) = 5 is a function, not 5."""
    if answer.label is None:
        return False, "an equation against a value"
    right = answer.right
    if (
        answer.argument is not None
        and isinstance(right, Value)
        and answer.argument not in tree.symbols(gold.node)
    ):
        return False, "a function against a value"
    if answer.label == "compound" and tree.symbols(gold.node):
        return False, "an equation against an expression"
    if isinstance(right, Equation):
        return False, "a chain of names"
    return same_answer(gold, right, steps)


def _digits_value(gold: Value, answer: Based) -> Verdict:
    """A number in a base against a number: equal in value, or digit by digit without its base."""
    if not isinstance(gold.node, Num) or gold.unit is not None or "." in answer.digits:
        return False, "a number in a base against an expression"
    digits = ("-" if answer.negative else "") + answer.digits
    if (
        gold.node.value.denominator == 1
        and abs(gold.node.value) < 10**60
        and digits == str(gold.node.value.numerator)
    ):
        return True, "digits, the gold doesn't say its base"
    return False, "number in a base"


def _based(gold: Based, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    if isinstance(answer, Based):
        same = gold.negative == answer.negative and gold.digits == answer.digits
        if gold.base == answer.base:
            return same, "digits and base"
        return False, "another base"
    if isinstance(answer, Value) and isinstance(answer.node, Num) and answer.unit is None:
        number = answer.node.value
        digits = ("-" if gold.negative else "") + gold.digits
        if number.denominator == 1 and abs(number) < 10**60 and not answer.percent:
            return str(number.numerator) == digits, "digits, the base left out"
    return False, f"{kind(answer)} against a number in a base"


def _relation(gold: Relation, answer: Answer, steps: Steps) -> Verdict:
    if not isinstance(answer, Relation):
        return False, f"{kind(answer)} against an inequality"
    if (gold.strict, gold.unequal) != (answer.strict, answer.unequal):
        return False, "another inequality sign"
    from prime_verifier_math.proportion import factor_between

    factor = factor_between(gold.node, answer.node, steps, signed=not gold.unequal)
    if factor is None:
        return False, "inequality"
    return factor != 0 if gold.unequal else factor > 0, "inequality"


def _equation(gold: Equation, answer: Answer, steps: Steps) -> Verdict:
    if isinstance(answer, Equation):
        return _two_equations(gold, answer, steps)
    if gold.label is None or gold.label == "compound":
        return False, f"{kind(answer)} against an equation"
    return same_answer(gold.right, answer, steps)


def _two_equations(gold: Equation, answer: Equation, steps: Steps) -> Verdict:
    # a left side of several names, as x + y, is a side and no name: x + y = 5 isn't x - y = 5
    sides = "compound" in (gold.label, answer.label)
    if gold.label is not None and answer.label is not None and not sides:
        if gold.label.replace(" ", "") == answer.label.replace(" ", ""):
            return same_answer(gold.right, answer.right, steps)
        if isinstance(gold.right, Value) and not tree.symbols(gold.right.node):
            applied = "(" in gold.label and "(" in answer.label
            words = len(gold.label) > 1 and len(answer.label) > 1
            if applied or not words or other_symbol(gold.label, answer.label):
                return False, "another name"
            return same_answer(gold.right, answer.right, steps)
        if {"y"} & {gold.label, answer.label} and "()" in gold.label + answer.label:
            return same_answer(gold.right, answer.right, steps)
    if gold.sides is None or answer.sides is None:
        return False, "another name"
    from prime_verifier_math.proportion import factor_between

    first = tree.add(gold.sides[0], tree.negate(gold.sides[1]))
    second = tree.add(answer.sides[0], tree.negate(answer.sides[1]))
    factor = factor_between(first, second, steps)
    return factor is not None and factor != 0, "equation"


def _text(gold: Text, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    if isinstance(answer, Text):
        one, two = gold.words, answer.words
        if len(one) >= MIN_WORD and one.isupper() != two.isupper():
            one, two = one.casefold(), two.casefold()  # SATURDAY is a word, ABC a name
        return one == two, "text"
    if isinstance(answer, Opaque | Value | Choice):
        return False, f"{kind(answer)} against words"
    return False, f"{kind(answer)} against words"


def _choice(gold: Choice, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    if isinstance(answer, Value) and isinstance(answer.node, Sym):
        return answer.node.name == gold.letter, "choice"
    return isinstance(answer, Choice) and answer.letter == gold.letter, "choice"


def _boolean(gold: Boolean, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    return isinstance(answer, Boolean) and answer.value == gold.value, "boolean"


def _absent(gold: Absent, answer: Answer, steps: Steps) -> Verdict:
    return isinstance(unlabelled(answer), Absent), "no value"


def _colon(gold: Colon, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    hour = hour_alone(gold)
    if isinstance(answer, Value) and hour is not None:
        plain = answer.unit is None and same_value(hour, answer.node, steps)[0]
        return plain, "hour, am or pm left out"
    if isinstance(answer, Value) and len(gold.parts) == 2 and not gold.half:
        return False, "a number against a ratio"
    if not isinstance(answer, Colon) or len(answer.parts) != len(gold.parts):
        return False, f"{kind(answer)} against a ratio or a time"
    shift = _noon_shift(gold, answer)
    for index, (one, two) in enumerate(zip(gold.parts, answer.parts, strict=True)):
        moved = tree.add(two, tree.integer(shift)) if index == 0 and shift else two
        if not same_value(one, moved, steps)[0]:
            return False, "ratio or time"
    return True, "ratio or time"


def _noon_shift(gold: Colon, answer: Colon) -> int:
    """What to add to the answer's hour where one says am or pm; 100 for a contradiction."""
    if gold.half == answer.half:
        return 0
    hours = [c.parts[0].value if isinstance(c.parts[0], Num) else Fraction(-1)
             for c in (gold, answer)]  # fmt: skip
    if gold.half and answer.half:
        return 100
    half = gold.half or answer.half
    full = hours[1] if gold.half else hours[0]
    twelve = hours[0] if gold.half else hours[1]
    if half == "pm" and full > 12 and full - 12 == twelve:
        return -12 if gold.half else 12
    return 0


def _congruence(gold: Congruence, answer: Answer, steps: Steps) -> Verdict:
    return same_class(gold, unlabelled(answer))


def _opaque(gold: Opaque, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    same = isinstance(answer, Opaque) and bool(gold.text) and gold.text == answer.text
    return same, "the very same writing"


_RULES: dict[type, Callable[[Any, Answer, Steps], Verdict]] = {
    Value: _value, Based: _based, Listing: same_listing, Ordered: same_ordered, Matrix: same_matrix,
    Region: same_set, Relation: _relation, Equation: _equation, Text: _text, Choice: _choice,
    Boolean: _boolean, Absent: _absent, Colon: _colon, Congruence: _congruence,
    Opaque: _opaque,
}  # fmt: skip
