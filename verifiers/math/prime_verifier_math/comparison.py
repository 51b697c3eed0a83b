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
from prime_verifier_math.equality import same_value
from prime_verifier_math.quantities import same_quantity
from prime_verifier_math.tree import Node, Num, Sym

Verdict = tuple[bool, str]


def same_answer(gold: Answer, answer: Answer, steps: Steps) -> Verdict:
    """The verdict and the name of the rule that decided; never raises."""
    try:
        return _RULES[type(gold)](gold, answer, steps)
    except OverBound as problem:
        return False, f"bound: {problem}"
    except Undefined as problem:
        return False, f"undefined: {problem}"


def _unlabelled(answer: Answer) -> Answer:
    """The right side of `x = answer`."""
    return answer.right if isinstance(answer, Equation) and answer.label is not None else answer


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
    if isinstance(answer, Colon) and len(answer.parts) == 2:
        return False, "a ratio isn't a number"
    return False, f"{kind(answer)} against a value"


def _labelled_value(gold: Value, answer: Equation, steps: Steps) -> Verdict:
    """x = 3 for 3; f(x) = 5 is a function, not 5."""
    if answer.label is None:
        return False, "an equation against a value"
    right = answer.right
    if answer.argument is not None and isinstance(right, Value):
        if answer.argument not in tree.symbols(gold.node):
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
    if gold.node.value.denominator == 1 and abs(gold.node.value) < 10**60:
        if digits == str(gold.node.value.numerator):
            return True, "digits, the gold doesn't say its base"
    return False, "number in a base"


def _based(gold: Based, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
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


def _listing(gold: Listing, answer: Answer, steps: Steps) -> Verdict:
    if isinstance(answer, Equation) and answer.label is not None:
        answer = _named_items(answer) or answer.right
    if isinstance(answer, Region) and gold.kind == "set":
        from prime_verifier_math.regions import as_region, same_region

        points = as_region(gold)
        if points is not None and not answer.pieces and not gold.items:
            return True, "empty"
        return points is not None and same_region(points, answer, steps), "region"
    if isinstance(answer, Ordered) and answer.opening == "<":
        return False, "a tuple against a list"
    if not isinstance(answer, Listing):
        if isinstance(answer, Absent) and not gold.items:
            return True, "empty"
        return False, f"{kind(answer)} against a list"
    if gold.dots or answer.dots:
        return _sequence(gold, answer, steps)
    first, second = _flat(gold), _flat(answer)
    if {"set", "pm"} & {gold.kind, answer.kind}:
        return _same_members(first, second, steps), "set"
    if len(first) != len(second):
        return False, "lists of different lengths"
    return _matched(first, second, steps), "unordered list"


def _named_items(answer: Equation) -> Listing | None:
    """(x, y) = (1, 2) as x = 1, y = 2."""
    names = (answer.label or "").strip("()").split(",")
    if not isinstance(answer.right, Ordered) or len(names) != len(answer.right.items):
        return None
    pairs = zip(names, answer.right.items, strict=True)
    return Listing(tuple(Equation(name, item, None) for name, item in pairs))


def _coordinates(answer: Listing) -> Ordered | None:
    """x = 1, y = 2 as (1, 2), where the names stand in alphabetical order."""
    equations = [item for item in answer.items if isinstance(item, Equation) and item.label]
    names = [item.label or "" for item in equations]
    if len(names) < 2 or len(names) != len(answer.items) or names != sorted(set(names)):
        return None
    if any(len(name) != 1 for name in names):
        return None
    return Ordered("(", tuple(item.right for item in equations), ")")


def _flat(listing: Listing) -> list[Answer]:
    """Items, plus-minus pairs among them spread out, shared labels taken off."""
    items: list[Answer] = []
    for item in listing.items:
        if isinstance(item, Listing) and item.kind == "pm":
            items.extend(item.items)
        elif isinstance(item, Equation) and isinstance(item.right, Listing):
            items.extend(item.right.items)
        else:
            items.append(item)
    return items


def _same_members(first: list[Answer], second: list[Answer], steps: Steps) -> bool:
    """Whether every member of each is a member of the other; written twice counts once."""
    first, second = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    return all(any(same_answer(one, two, steps)[0] for two in second) for one in first) and all(
        any(same_answer(one, two, steps)[0] for one in first) for two in second
    )


def _matched(first: list[Answer], second: list[Answer], steps: Steps) -> bool:
    """Whether each item has its own partner. Equality is an equivalence, so greedy is enough."""
    left, rest = list(second), []
    for item in first:
        # identical writings first: they cost nothing
        if item in left:
            left.remove(item)
        else:
            rest.append(item)
    for item in rest:
        for index, other in enumerate(left):
            steps.spend()
            if same_answer(item, other, steps)[0]:
                del left[index]
                break
        else:
            return False
    return True


def _sequence(gold: Listing, answer: Listing, steps: Steps) -> Verdict:
    """Lists with an ellipsis are compared in order."""
    if gold.dots != answer.dots or len(gold.items) != len(answer.items):
        return False, "sequences of different shapes"
    return all(
        same_answer(one, two, steps)[0] for one, two in zip(gold.items, answer.items, strict=True)
    ), "sequence"


def _ordered(gold: Ordered, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
    if isinstance(answer, Region):
        from prime_verifier_math.regions import as_region, same_region

        region = as_region(gold)
        return region is not None and same_region(region, answer, steps), "interval"
    if isinstance(answer, Matrix):
        return _vector(gold, answer, steps), "vector"
    if isinstance(answer, Listing) and gold.opening == "(":
        answer = _coordinates(answer) or answer
    if not isinstance(answer, Ordered):
        return False, f"{kind(answer)} against a tuple"
    brackets = {(gold.opening, gold.closing), (answer.opening, answer.closing)}
    if len(brackets) != 1 and brackets != {("(", ")"), ("<", ">")}:
        return False, "other brackets"
    if len(gold.items) != len(answer.items):
        return False, "tuples of different lengths"
    return all(
        same_answer(one, two, steps)[0] for one, two in zip(gold.items, answer.items, strict=True)
    ), "ordered"


def _vector(gold: Ordered, answer: Matrix, steps: Steps) -> bool:
    """A tuple against a row or a column."""
    if len(answer.rows) == 1 or all(len(row) == 1 for row in answer.rows):
        entries = [node for row in answer.rows for node in row]
        return (
            len(entries) == len(gold.items)
            and gold.opening in "(<["
            and all(
                same_answer(item, Value(node), steps)[0]
                for item, node in zip(gold.items, entries, strict=True)
            )
        )
    return False


def _matrix(gold: Matrix, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
    if isinstance(answer, Ordered):
        nested = _nested(answer)
        if nested is None:
            return _vector(answer, gold, steps), "vector"
        answer = nested
    if not isinstance(answer, Matrix):
        return False, f"{kind(answer)} against a matrix"
    shapes = [(len(m.rows), len(m.rows[0])) for m in (gold, answer)]
    if shapes[0] != shapes[1]:
        return False, "matrices of different shapes"
    return all(
        same_value(one, two, steps)[0]
        for row, other in zip(gold.rows, answer.rows, strict=True)
        for one, two in zip(row, other, strict=True)
    ), "matrix"


def _nested(answer: Ordered) -> Matrix | None:
    """[[1, 2], [3, 4]] as a matrix."""
    rows: list[tuple[Node, ...]] = []
    for item in answer.items:
        if not isinstance(item, Ordered) or item.opening != "[":
            return None
        row = [entry.node for entry in item.items if isinstance(entry, Value)]
        if len(row) != len(item.items):
            return None
        rows.append(tuple(row))
    return Matrix(tuple(rows)) if len({len(row) for row in rows}) == 1 else None


def _region(gold: Region, answer: Answer, steps: Steps) -> Verdict:
    from prime_verifier_math.regions import as_region, same_region, union

    if isinstance(answer, Equation) and answer.label is not None:
        if gold.variable not in (None, answer.label):
            return False, "another variable"
        answer = answer.right
    if isinstance(answer, Listing) and answer.kind in ("list", "or") and len(answer.items) > 1:
        parts = [as_region(item) for item in answer.items]
        if all(part is not None for part in parts):
            answer = union(piece for part in parts if part for piece in part.pieces)
    region = as_region(answer)
    if region is None:
        return False, f"{kind(answer)} against a set of numbers"
    if gold.variable and region.variable and gold.variable != region.variable:
        return False, "another variable"
    return same_region(gold, region, steps), "region"


def _relation(gold: Relation, answer: Answer, steps: Steps) -> Verdict:
    if not isinstance(answer, Relation):
        return False, f"{kind(answer)} against an inequality"
    if (gold.strict, gold.unequal) != (answer.strict, answer.unequal):
        return False, "another inequality sign"
    from prime_verifier_math.proportion import factor_between

    factor = factor_between(gold.node, answer.node, steps)
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
    if gold.label is not None and answer.label is not None:
        if gold.label.replace(" ", "") == answer.label.replace(" ", ""):
            verdict, rule = same_answer(gold.right, answer.right, steps)
            if verdict or gold.label != "compound":
                return verdict, rule
        elif isinstance(gold.right, Value) and not tree.symbols(gold.right.node):
            if not (len(gold.label) > 1 and len(answer.label) > 1):
                return False, "another name"
            return same_answer(gold.right, answer.right, steps)
        elif {"y"} & {gold.label, answer.label} and "()" in gold.label + answer.label:
            return same_answer(gold.right, answer.right, steps)
    if gold.sides is None or answer.sides is None:
        return False, "another name"
    from prime_verifier_math.proportion import factor_between

    first = tree.add(gold.sides[0], tree.negate(gold.sides[1]))
    second = tree.add(answer.sides[0], tree.negate(answer.sides[1]))
    factor = factor_between(first, second, steps)
    return factor is not None and factor != 0, "equation"


def _text(gold: Text, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
    if isinstance(answer, Text):
        return gold.words == answer.words, "text"
    if isinstance(answer, Opaque | Value | Choice):
        return False, f"{kind(answer)} against words"
    return False, f"{kind(answer)} against words"


def _choice(gold: Choice, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
    if isinstance(answer, Value) and isinstance(answer.node, Sym):
        return answer.node.name == gold.letter, "choice"
    return isinstance(answer, Choice) and answer.letter == gold.letter, "choice"


def _boolean(gold: Boolean, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
    return isinstance(answer, Boolean) and answer.value == gold.value, "boolean"


def _absent(gold: Absent, answer: Answer, steps: Steps) -> Verdict:
    return isinstance(_unlabelled(answer), Absent), "no value"


def _colon(gold: Colon, answer: Answer, steps: Steps) -> Verdict:
    answer = _unlabelled(answer)
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


def _opaque(gold: Opaque, answer: Answer, steps: Steps) -> Verdict:
    same = isinstance(answer, Opaque) and bool(gold.text) and gold.text == answer.text
    return same, "the very same writing"


_RULES: dict[type, Callable[[Any, Answer, Steps], Verdict]] = {
    Value: _value, Based: _based, Listing: _listing, Ordered: _ordered, Matrix: _matrix,
    Region: _region, Relation: _relation, Equation: _equation, Text: _text, Choice: _choice,
    Boolean: _boolean, Absent: _absent, Colon: _colon, Opaque: _opaque,
}  # fmt: skip


def kind(answer: Answer) -> str:
    """The type of an answer in words, for evidence and messages."""
    return type(answer).__name__.lower()
