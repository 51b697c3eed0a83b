"""Whether two expressions are equal: structure, exact arithmetic, numeric points, sympy last.

`same_value` is the only entry; it names the stage that decided and never raises.
"""

from __future__ import annotations

from prime_verifier_math import tree
from prime_verifier_math.bounds import EXACT_STEPS, OverBound, Steps, Undefined
from prime_verifier_math.exact import difference, reduce_node
from prime_verifier_math.tree import Node, Num


def same_value(a: Node, b: Node, steps: Steps) -> tuple[bool, str]:
    """The verdict and the stage: rational, structure, infinity, exact, numeric, symbolic, bound."""
    if isinstance(a, Num) and isinstance(b, Num):
        return a.value == b.value, "rational"
    if a == b:
        return True, "structure"
    if tree.has_infinity(a) or tree.has_infinity(b):
        return _same_infinity(a, b, steps), "infinity"
    try:
        verdict = _exactly(a, b, steps)
        if verdict != "open":
            return verdict == "equal" and _same_on_reals(a, b, steps), "exact"
    except Undefined:
        return False, "undefined"
    return _same_at_points(a, b, steps)


def _exactly(a: Node, b: Node, steps: Steps) -> str:
    """The exact verdict, or "open" where the exact reading is too long."""
    budget = Steps(min(EXACT_STEPS, steps.left))
    before = budget.left
    try:
        verdict = difference(reduce_node(a, budget), reduce_node(b, budget), budget)
    except OverBound:
        verdict = "open"
    steps.spend(before - max(budget.left, 0))
    return verdict


def _same_on_reals(a: Node, b: Node, steps: Steps) -> bool:
    """Whether negative values keep equal what exact roots, with letters above 0, call equal."""
    from prime_verifier_math.numeric import differ_on_reals, has_even_root

    if not (has_even_root(a) or has_even_root(b)):
        return True
    try:
        return not differ_on_reals(a, b, steps)
    except OverBound:
        return False


def _same_infinity(a: Node, b: Node, steps: Steps) -> bool:
    """Signed infinities are equal by sign; +infinity is infinity."""
    del steps
    return tree.signed_infinity(a) == tree.signed_infinity(b) != 0


def _same_at_points(a: Node, b: Node, steps: Steps) -> tuple[bool, str]:
    from prime_verifier_math.numeric import agree, differ_on_reals

    if b == tree.ZERO:
        a, b = b, a
    if a == tree.ZERO and isinstance(b, tree.Add):
        # against zero there is no scale; the parts of the sum give one
        a, b = b.terms[0], tree.negate(tree.add(*b.terms[1:]))
    try:
        verdict = agree(a, b, steps)
        if verdict is not False and differ_on_reals(a, b, steps):
            verdict = False
    except OverBound:
        steps.spend(0)  # an empty budget ends the whole comparison
        return False, "bound"
    if verdict is not None:
        return verdict, "numeric"
    from prime_verifier_math.symbolic import simplifies_to_zero

    return simplifies_to_zero(a, b), "symbolic"
