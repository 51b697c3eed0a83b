"""Sets of real numbers: unions of intervals, read from brackets, cups and complements.

Ends keep their expressions and are ordered by value; two regions are equal when their pieces are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prime_verifier_math import tree
from prime_verifier_math.answers import Answer, Equation, Listing, Ordered, Piece, Region, Value
from prime_verifier_math.bounds import MAX_ITEMS, OverBound, Steps, Unreadable
from prime_verifier_math.equality import same_value
from prime_verifier_math.splitting import Cut, cut, whole_bracket
from prime_verifier_math.tokens import Token
from prime_verifier_math.tree import Node, Num

MINUS_INFINITY = tree.negate(tree.INFINITY)
EVERYTHING = Piece(MINUS_INFINITY, False, tree.INFINITY, False)


def read_region(made: Sequence[Token]) -> Region | None:
    """A union, an intersection, a complement, or all real numbers; None for anything else."""
    if _is_reals(made):
        return Region((EVERYTHING,))
    pieces = _set_operations(made)
    if not pieces.separators:
        return None
    region = _operand(pieces.parts[0])
    for name, part in zip(pieces.separators, pieces.parts[1:], strict=True):
        other = _operand(part)
        if name == "cup":
            region = union((*region.pieces, *other.pieces))
        elif name == "cap":
            region = intersection(region, other)
        else:
            region = intersection(region, complement(other))
    return region


def _set_operations(made: Sequence[Token]) -> Cut:
    def name(token: Token) -> str | None:
        if token.is_cmd("cup", "cap", "setminus"):
            return token.text
        return None

    found = cut(made, name)
    if found.separators:
        return found
    # (1,2) U (3,4): the capital letter between two brackets
    marked = [
        Token("cmd", "cup")
        if 0 < i < len(made) - 1
        and token.kind == "let"
        and token.text == "U"
        and made[i - 1].is_op(")]")
        and made[i + 1].is_op("([")
        else token
        for i, token in enumerate(made)
    ]
    found = cut(marked, name)
    if found.separators:
        return found
    reals = _leading_reals(made)
    if reals and reals < len(made) and made[reals].is_op("-"):
        return Cut([list(made[:reals]), list(made[reals + 1 :])], ["setminus"])
    return found


def _leading_reals(made: Sequence[Token]) -> int:
    """How many tokens the sign of the real numbers takes at the start."""
    if made and made[0].is_cmd("reals"):
        return 1
    if made and made[0].is_cmd("mathbb", "Bbb", "mathds"):
        if len(made) > 1 and made[1].text == "R":
            return 2
        if len(made) > 3 and made[1].is_op("{") and made[2].text == "R":
            return 4
    return 0


def _is_reals(made: Sequence[Token]) -> bool:
    return bool(made) and _leading_reals(made) == len(made)


def _operand(made: Sequence[Token]) -> Region:
    from prime_verifier_math.reading import read_tokens

    if made and made[0].is_op("(") and whole_bracket(made):
        inner = _set_operations(made[1:-1])
        if inner.separators:
            region = read_region(made[1:-1])
            assert region is not None
            return region
    region = as_region(read_tokens(made))
    if region is None:
        raise Unreadable("a set operation on what is no set of numbers")
    return region


def as_region(answer: Answer) -> Region | None:
    """An interval, a region or a set of numbers as a region; None for anything else."""
    if isinstance(answer, Region):
        return answer
    if isinstance(answer, Ordered) and len(answer.items) == 2:
        low, high = answer.items
        if not isinstance(low, Value) or not isinstance(high, Value):
            return None
        if answer.opening not in "([" or answer.closing not in ")]":
            return None
        return Region((Piece(low.node, answer.opening == "[", high.node, answer.closing == "]"),))
    if isinstance(answer, Listing) and answer.kind in ("set", "pm") and not answer.dots:
        points = [item.node for item in answer.items if isinstance(item, Value)]
        if len(points) == len(answer.items):
            return Region(tuple(Piece(node, True, node, True) for node in points))
    return None


def point_of(answer: Answer) -> Region | None:
    """`x = 3` beside conditions on x: the region of one point."""
    if not isinstance(answer, Equation) or not isinstance(answer.right, Value):
        return None
    if answer.label is None or tree.symbols(answer.right.node):
        return None
    return Region((Piece(answer.right.node, True, answer.right.node, True),), answer.label)


def size(node: Node, steps: Steps) -> float | None:
    """An end as a float, for ordering."""
    sign = tree.signed_infinity(node)
    if sign:
        return sign * float("inf")
    if isinstance(node, Num):
        try:
            return float(node.value)
        except OverflowError:
            return None
    from prime_verifier_math.numeric import approximate

    if tree.symbols(node):
        return None
    return approximate(node, steps)


def union(pieces: Iterable[Piece], variable: str | None = None) -> Region:
    """Pieces in order, overlapping and touching ones joined."""
    steps = Steps()
    placed = []
    for piece in pieces:
        low, high = size(piece.low, steps), size(piece.high, steps)
        if low is None or high is None:
            # ends with variables can't be ordered: the pieces stay as they were written
            return Region(tuple(pieces), variable)
        if low < high or (low == high and piece.low_closed and piece.high_closed):
            placed.append((low, not piece.low_closed, high, piece))
    if len(placed) > MAX_ITEMS:
        raise OverBound("too many intervals")
    placed.sort(key=lambda one: one[:3])
    joined: list[Piece] = []
    reach = float("-inf")
    for low, _, high, piece in placed:
        last = joined[-1] if joined else None
        if last is not None and (
            low < reach or (low == reach and (last.high_closed or piece.low_closed))
        ):
            if high > reach or (high == reach and piece.high_closed and not last.high_closed):
                joined[-1] = Piece(last.low, last.low_closed, piece.high, piece.high_closed)
                reach = high
        else:
            joined.append(piece)
            reach = high
    return Region(tuple(joined), variable)


def complement(region: Region) -> Region:
    """All real numbers outside."""
    gaps = []
    low, closed = MINUS_INFINITY, False
    for piece in union(region.pieces).pieces:
        gaps.append(Piece(low, closed, piece.low, not piece.low_closed))
        low, closed = piece.high, not piece.high_closed
    gaps.append(Piece(low, closed, tree.INFINITY, False))
    return union(
        piece for piece in gaps if piece.low != tree.INFINITY and piece.high != MINUS_INFINITY
    )


def intersection(a: Region, b: Region) -> Region:
    """What lies in both."""
    steps = Steps()
    both = []
    for one in a.pieces:
        for two in b.pieces:
            ends = [size(node, steps) for node in (one.low, two.low, one.high, two.high)]
            if any(end is None for end in ends):
                raise Unreadable("ends that can't be ordered")
            low = max(
                (ends[0], not one.low_closed, 0, one),
                (ends[1], not two.low_closed, 1, two),
                key=lambda end: end[:2],
            )[3]
            high = min(
                (ends[2], one.high_closed, 0, one),
                (ends[3], two.high_closed, 1, two),
                key=lambda end: end[:2],
            )[3]
            both.append(Piece(low.low, low.low_closed, high.high, high.high_closed))
    if len(both) > MAX_ITEMS:
        raise OverBound("too many intervals")
    return union(both, a.variable or b.variable)


def joined(regions: Sequence[Region], kind: str) -> Region:
    """Conditions side by side: `or` unites; commas and `and` intersect unless that is empty."""
    variables = {region.variable for region in regions if region.variable}
    if len(variables) > 1:
        raise Unreadable("conditions on several variables")
    variable = variables.pop() if variables else None
    united = union((piece for region in regions for piece in region.pieces), variable)
    if kind == "or" or len(regions) > 8:
        return united
    common = regions[0]
    for region in regions[1:]:
        common = intersection(common, region)
    return Region(common.pieces, variable) if common.pieces else united


def same_region(a: Region, b: Region, steps: Steps) -> bool:
    """Whether two unions have the same pieces."""
    first, second = union(a.pieces).pieces, union(b.pieces).pieces
    if len(first) != len(second):
        return False
    return all(
        one.low_closed == two.low_closed
        and one.high_closed == two.high_closed
        and same_value(one.low, two.low, steps)[0]
        and same_value(one.high, two.high, steps)[0]
        for one, two in zip(first, second, strict=True)
    )
