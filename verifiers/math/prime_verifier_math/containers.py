"""Rules for golds that hold several answers: lists, sets, tuples, intervals, matrices.

Called by `comparison.py`, which judges the members in turn.
"""

from __future__ import annotations

from prime_verifier_math.answers import (
    Absent,
    Answer,
    Equation,
    Listing,
    Matrix,
    Ordered,
    Region,
    Value,
)
from prime_verifier_math.bounds import Steps
from prime_verifier_math.equality import same_value
from prime_verifier_math.names import alike, key
from prime_verifier_math.regions import as_region, same_region, union
from prime_verifier_math.tree import Node

Verdict = tuple[bool, str]


def unlabelled(answer: Answer) -> Answer:
    """The right side of `x = answer`."""
    return answer.right if isinstance(answer, Equation) and answer.label is not None else answer


def kind(answer: Answer) -> str:
    """The type of an answer in words, for evidence and messages."""
    return type(answer).__name__.lower()


def same_answer(gold: Answer, answer: Answer, steps: Steps) -> Verdict:
    """The rule for one member."""
    from prime_verifier_math.comparison import same_answer as judge

    return judge(gold, answer, steps)


def same_listing(gold: Listing, answer: Answer, steps: Steps) -> Verdict:
    if isinstance(answer, Equation) and answer.label is not None:
        answer = _named_items(answer) or answer.right
    if isinstance(answer, Region) and gold.kind == "set":
        points = as_region(gold)
        if points is not None and not answer.pieces and not gold.items:
            return True, "empty"
        return points is not None and same_region(points, answer, steps), "region"
    if isinstance(answer, Ordered) and answer.opening == "<":
        return False, "a tuple against a list"
    if isinstance(answer, Ordered) and answer.opening == "(" and _coordinates(gold) is not None:
        return same_ordered(_coordinates(gold) or answer, answer, steps)
    if not isinstance(answer, Listing):
        if isinstance(answer, Absent) and not gold.items:
            return True, "empty"
        return False, f"{kind(answer)} against a list"
    if gold.dots or answer.dots:
        return _sequence(gold, answer, steps)
    first, second = _flat(gold), _flat(answer)
    if _names(first) > 1 and _names(second) == 0:
        # values without the names of the gold's: their order says whose they are
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(
            same_answer(one, two, steps)[0] for one, two in pairs
        ), "values in the order of the names"
    if "set" in (gold.kind, answer.kind):
        return _same_members(first, second, steps), "set"
    if len(first) != len(second):
        return False, "lists of different lengths"
    if min(_names(first), _names(second)) > 1:
        return _matched_by_name(first, second, steps), "list of named values"
    return _matched(first, second, steps), "unordered list"


def _names(items: list[Answer]) -> int:
    """How many different names the items carry."""
    return len({item.label for item in items if isinstance(item, Equation) and item.label})


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
    if answer.kind == "or":
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


def _matched_by_name(first: list[Answer], second: list[Answer], steps: Steps) -> bool:
    """Whether values of one name match, those of names alike, and the rest in their order.

    Names in words may differ (mean, average), so only their order says whose a value is.
    """
    ours, theirs = _by_name(first), _by_name(second)
    for name in list(ours):
        near = [other for other in theirs if other == name or alike(other, name)]
        if len(near) != 1 or sum(alike(near[0], one) for one in ours) > 1:
            near = [name] if name in theirs else []
        if near and not _matched(ours.pop(name), theirs.pop(near[0]), steps):
            return False
    rest = [item for members in ours.values() for item in members]
    others = [item for members in theirs.values() for item in members]
    return len(rest) == len(others) and all(
        same_answer(one, two, steps)[0] for one, two in zip(rest, others, strict=True)
    )


def _by_name(items: list[Answer]) -> dict[str, list[Answer]]:
    """The items by the keys of their names, "" for none, in order."""
    found: dict[str, list[Answer]] = {}
    for item in items:
        label = item.label or "" if isinstance(item, Equation) else ""
        found.setdefault(key(label), []).append(item)
    return found


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


def same_ordered(gold: Ordered, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
    if isinstance(answer, Region):
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


def same_matrix(gold: Matrix, answer: Answer, steps: Steps) -> Verdict:
    answer = unlabelled(answer)
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


def same_set(gold: Region, answer: Answer, steps: Steps) -> Verdict:
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
