"""The problems: a numbered space for each kind, and the exact answer of each number.

Called by the task list and the verifier's tests; a problem is a pure function of (kind, digits,
terms, index), and its key is the same however it is asked.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from prime_env_arithmetic.params import ArithmeticParams

OPERATORS = "+-*"


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem.

    Attributes:
        operands: the numbers, in order.
        operators: what stands between them, e.g. "+" or "+*"; "?" for a comparison.
        key: what the split hashes; equal for 37+85 and 85+37, so that the commuted twin of a
            held-out problem is held out too.
        answer: the answer, digits in the usual order.
    """

    operands: tuple[int, ...]
    operators: str
    key: str
    answer: str

    def expression(self, digits: int, space: str = "") -> str:
        """The problem with operands of fixed width, e.g. 07+05."""
        text = f"{self.operands[0]:0{digits}d}"
        for operator, operand in zip(self.operators, self.operands[1:], strict=True):
            text += f"{space}{operator}{space}{operand:0{digits}d}"
        return text


def space_size(params: ArithmeticParams) -> int:
    """How many problems there are of this kind and size."""
    base = 10**params.digits
    if params.kind == "chain":
        return int(base**params.terms * len(OPERATORS) ** (params.terms - 1))
    return int(base * base)


def problem(params: ArithmeticParams, index: int) -> Problem:
    """The problem of a number in [0, space_size)."""
    base = 10**params.digits
    if params.kind == "chain":
        return _chain(index, base, params.terms)
    first, second = divmod(index, base)
    low, high = sorted((first, second))
    if params.kind == "subtraction":
        return Problem((first, second), "-", f"{first}-{second}", str(first - second))
    if params.kind == "multiplication":
        return Problem((first, second), "*", f"{low}*{high}", str(first * second))
    if params.kind == "comparison":
        sign = "=" if first == second else "<" if first < second else ">"
        return Problem((first, second), "?", f"{low}?{high}", sign)
    return Problem((first, second), "+", f"{low}+{high}", str(first + second))


def _chain(index: int, base: int, terms: int) -> Problem:
    operands, operators = [], ""
    for _ in range(terms):
        index, operand = divmod(index, base)
        operands.append(operand)
    for _ in range(terms - 1):
        index, operator = divmod(index, len(OPERATORS))
        operators += OPERATORS[operator]
    key = str(operands[0])
    for operator_sign, operand in zip(operators, operands[1:], strict=True):
        key += f"{operator_sign}{operand}"
    return Problem(tuple(operands), operators, key, str(_value(operands, operators)))


def _value(operands: list[int], operators: str) -> int:
    # Signed products: a minus starts a negative one, a times goes on with the current one.
    products = [[operands[0]]]
    for operator, operand in zip(operators, operands[1:], strict=True):
        if operator == "*":
            products[-1].append(operand)
        else:
            products.append([operand if operator == "+" else -operand])
    return sum(prod(factors) for factors in products)


def reverse_digits(answer: str) -> str:
    """The digits lowest first, a minus sign still in front: -120 gives -021."""
    return "-" + answer[:0:-1] if answer.startswith("-") else answer[::-1]
