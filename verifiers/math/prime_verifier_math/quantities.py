"""Two values with units: numbers, percentages, money, measures, angles.

The gold's unit chooses: a unit left out is accepted, another dimension isn't, one dimension is
converted exactly. docs/reference/math-rules.md states each rule.
"""

from __future__ import annotations

from fractions import Fraction

from prime_verifier_math import tree
from prime_verifier_math.answers import Value
from prime_verifier_math.bounds import Steps
from prime_verifier_math.equality import same_value
from prime_verifier_math.tree import Node, Num
from prime_verifier_math.units import GENERIC, Unit

Verdict = tuple[bool, str]
_TO_RADIANS = tree.divide(tree.PI, tree.integer(180))


def same_quantity(gold: Value, answer: Value, steps: Steps) -> Verdict:
    """Whether two values with their units are the same."""
    if gold.approx and not answer.approx:
        same, rule = _same(Value(gold.node, gold.unit, gold.percent), answer, steps)
        return (same, rule) if same else _rounded(gold, answer, steps)
    return _same(gold, answer, steps)


def _same(gold: Value, answer: Value, steps: Steps) -> Verdict:
    if gold.percent != answer.percent:
        return _one_percent(gold, answer, steps)
    if gold.unit is None and answer.unit is None:
        return same_value(gold.node, answer.node, steps)
    if gold.unit is None:
        return _unit_added(gold, answer, steps)
    if answer.unit is None:
        return _unit_left_out(gold, gold.unit, answer, steps)
    return _both_units(gold, gold.unit, answer, answer.unit, steps)


def _rounded(gold: Value, answer: Value, steps: Steps) -> Verdict:
    """A gold that says it is rounded takes whatever rounds to it."""
    from prime_verifier_math.relations import rounds_to

    if (
        gold.unit is not None
        and answer.unit is not None
        and gold.unit.dimensions != answer.unit.dimensions
    ):
        return False, "another unit"
    if not isinstance(gold.node, Num) or gold.node.places is None:
        return False, "rounded"
    if (
        isinstance(answer.node, Num)
        and answer.node.places is not None
        and answer.node.places < gold.node.places
    ):
        return False, "rounded more than the gold"
    half = Num(gold.node.value, gold.node.places)
    return rounds_to(answer.node, half, steps), "rounds to the gold"


def _one_percent(gold: Value, answer: Value, steps: Steps) -> Verdict:
    """5% is 0.05. A gold percentage may lose its sign, a gold number can't gain one."""
    if same_value(gold.node, answer.node, steps)[0]:
        return True, "percent as a number"
    if gold.percent and answer.unit is None:
        raised = tree.multiply(gold.node, tree.integer(100))
        return same_value(raised, answer.node, steps)[0], "percent sign left out"
    return False, "percent"


def _unit_added(gold: Value, answer: Value, steps: Steps) -> Verdict:
    """A bare gold takes any unit but one that is a part of a whole, such as cents."""
    unit = answer.unit
    assert unit is not None
    if unit.minor:
        return False, "a smaller unit than the gold's number"
    if _is_angle(unit) and _has_pi(gold.node):
        turned = tree.multiply(answer.node, _TO_RADIANS)
        return same_value(gold.node, turned, steps)[0], "degrees as radians"
    same, rule = same_value(gold.node, answer.node, steps)
    if same:
        return True, f"{rule}, unit added"
    return False, "number"


def _unit_left_out(gold: Value, unit: Unit, answer: Value, steps: Steps) -> Verdict:
    if answer.maybe_unit is not None:
        node, other = answer.maybe_unit
        if other.dimensions == unit.dimensions:
            return _both_units(gold, unit, Value(node, other), other, steps)
    same, rule = same_value(gold.node, answer.node, steps)
    if same:
        return True, f"{rule}, unit left out"
    if _is_angle(unit) and _has_pi(answer.node):
        turned = tree.multiply(gold.node, _TO_RADIANS)
        return same_value(turned, answer.node, steps)[0], "radians as degrees"
    return False, "number"


def _both_units(gold: Value, unit: Unit, answer: Value, other: Unit, steps: Steps) -> Verdict:
    if unit.dimensions != other.dimensions:
        angles = {unit.dimensions, other.dimensions}
        if angles == {(("angle", 1),), (("radian", 1),)}:
            return _angles(gold, unit, answer, steps)
        if not unit.measured and not other.measured:
            return same_value(gold.node, answer.node, steps)[0], "number, counted noun"
        if other.name in GENERIC or unit.name in GENERIC or other.name == "unit":
            return same_value(gold.node, answer.node, steps)[0], "number, unit unnamed"
        return False, "another unit"
    if not unit.measured:
        return same_value(gold.node, answer.node, steps)[0], "number, counted noun"
    ratio: Fraction = other.factor / unit.factor
    node = answer.node if ratio == 1 else tree.multiply(answer.node, Num(ratio))
    return same_value(gold.node, node, steps)[0], "unit converted" if ratio != 1 else "same unit"


def _angles(gold: Value, unit: Unit, answer: Value, steps: Steps) -> Verdict:
    """Degrees against radians, both said."""
    if _is_angle(unit):
        turned = tree.multiply(gold.node, _TO_RADIANS)
        return same_value(turned, answer.node, steps)[0], "radians as degrees"
    turned = tree.multiply(answer.node, _TO_RADIANS)
    return same_value(gold.node, turned, steps)[0], "degrees as radians"


def _is_angle(unit: Unit) -> bool:
    return unit.dimensions == (("angle", 1),)


def _has_pi(node: Node) -> bool:
    return any(one == tree.PI for one in tree.walk(node))
