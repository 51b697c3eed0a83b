"""A small evaluator for the expressions of data sets' assertions: literals, operators, pure calls.

Called when an assertion block is taken apart and when its results are compared. Nothing but the
nodes and functions named here is ever evaluated, and sizes are bounded.
"""

from __future__ import annotations

import ast
import math
import operator
import re
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prime_verifier_code.hashing import bounded_dict, bounded_frozenset, bounded_set

MAX_BITS = 100_000  # of an int that ** or << makes
MAX_ITEMS = 2_000_000  # of a sequence that * makes
MAX_NODES = 200_000  # of one expression
REPEATED = (list, tuple, str, bytes, deque)
WIDE = re.compile(r"\*|[0-9]{5}")  # a width in a format that fills the memory

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Invert: operator.invert,
}
COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    # Of values that were rebuilt from plain data only the constants have an identity.
    ast.Is: lambda a, b: a is b,
    ast.IsNot: lambda a, b: a is not b,
}


def joined(items: Iterable[Any], start: Any = 0) -> Any:
    """`sum`, of lists and tuples too, but without copying what is joined again and again."""
    kind = type(start)
    if kind is not list and kind is not tuple:
        return sum(items, start)
    made = list(start)
    for item in items:
        if type(item) is not kind:
            raise TypeError(f"a {kind.__name__} and a {type(item).__name__} can't be joined")
        made += item
    return kind(made)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (abs, len, max, min, round, sorted)},
    **{kind.__name__: kind for kind in (bool, float, int, list, tuple)},
    "sum": joined,
    "dict": bounded_dict,
    "set": bounded_set,
    "frozenset": bounded_frozenset,
    **{f"math.{name}": getattr(math, name) for name in ("fabs", "floor", "ceil", "sqrt", "pow")},
    **{f"math.{name}": getattr(math, name) for name in ("isclose", "isnan", "isinf")},
}
CONSTANTS = {"math.pi": math.pi, "math.inf": math.inf, "math.e": math.e, "math.nan": math.nan}


def parse(source: str) -> ast.Module:
    """The tree of a data set's source.

    Raises:
        ValueError: it is no Python.
    """
    try:
        with warnings.catch_warnings():
            # An unknown escape such as \w is the data's spelling, not this program's mistake.
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise ValueError(f"no Python: {error}") from error


class Unsupported(ValueError):
    """The expression holds something that this evaluator doesn't do."""


def check(node: ast.expr, names: frozenset[str] = frozenset()) -> None:
    """Refuse, before anything is evaluated, what `evaluate` couldn't do.

    Args:
        node: the expression.
        names: variables that will be given.

    Raises:
        Unsupported: with the reason.
    """
    for count, part in enumerate(ast.walk(node)):
        if count > MAX_NODES:
            raise Unsupported("a very large expression")
        _check_node(part, names)


def _check_node(node: ast.AST, names: frozenset[str]) -> None:
    if isinstance(node, ast.Call):
        if dotted(node.func) not in FUNCTIONS:
            raise Unsupported(f"a call of {ast.unparse(node.func)[:40]}")
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise Unsupported("a starred argument")
        if any(keyword.arg is None for keyword in node.keywords):
            raise Unsupported("a double starred argument")
    elif isinstance(node, ast.Name):
        if node.id not in names and node.id not in FUNCTIONS and node.id != "math":
            raise Unsupported(f"the name {node.id}")
    elif isinstance(node, ast.Attribute):
        if dotted(node) not in {*FUNCTIONS, *CONSTANTS}:
            raise Unsupported(f"the attribute {node.attr}")
    elif isinstance(node, ast.Dict):
        if None in node.keys:
            raise Unsupported("a dict unpacked into another")
    elif not isinstance(node, PLAIN_NODES):
        raise Unsupported(f"a {type(node).__name__}")


PLAIN_NODES = (
    *(ast.Constant, ast.List, ast.Tuple, ast.Set, ast.keyword, ast.expr_context),
    *(ast.UnaryOp, ast.BinOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Slice, ast.IfExp),
    *(ast.operator, ast.unaryop, ast.boolop, ast.cmpop),
)


def dotted(node: ast.expr) -> str:
    """`name` or `math.name` as text, "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return f"{node.value.id}.{node.attr}"
    return ""


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression that passed `check`; raises whatever Python itself would."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names[node.id] if node.id in names else FUNCTIONS[node.id]
    if isinstance(node, ast.Attribute):
        return CONSTANTS[dotted(node)]
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        kind = {ast.List: list, ast.Tuple: tuple, ast.Set: set}[type(node)]
        return kind(evaluate(item, names) for item in node.elts)
    if isinstance(node, ast.Dict):
        keys = [evaluate(key, names) for key in node.keys if key is not None]
        return dict(zip(keys, (evaluate(each, names) for each in node.values), strict=True))
    return _evaluate_operation(node, names)


def _evaluate_operation(node: ast.expr, names: Mapping[str, Any]) -> Any:
    if isinstance(node, ast.UnaryOp):
        return UNARY[type(node.op)](evaluate(node.operand, names))
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, names), evaluate(node.right, names)
        _check_size(node.op, left, right)
        return BINARY[type(node.op)](left, right)
    if isinstance(node, ast.BoolOp):
        value: Any = None
        for each in node.values:
            value = evaluate(each, names)
            if bool(value) is isinstance(node.op, ast.Or):
                break
        return value
    if isinstance(node, ast.Compare):
        return _evaluate_comparison(node, names)
    if isinstance(node, ast.IfExp):
        return evaluate(node.body if evaluate(node.test, names) else node.orelse, names)
    if isinstance(node, ast.Subscript):
        return evaluate(node.value, names)[evaluate(node.slice, names)]
    if isinstance(node, ast.Slice):
        ends = (node.lower, node.upper, node.step)
        return slice(*(None if end is None else evaluate(end, names) for end in ends))
    assert isinstance(node, ast.Call), type(node)
    arguments = [evaluate(each, names) for each in node.args]
    keywords = {each.arg: evaluate(each.value, names) for each in node.keywords if each.arg}
    return FUNCTIONS[dotted(node.func)](*arguments, **keywords)


def _evaluate_comparison(node: ast.Compare, names: Mapping[str, Any]) -> Any:
    left = evaluate(node.left, names)
    value: Any = True
    for how, each in zip(node.ops, node.comparators, strict=True):
        right = evaluate(each, names)
        value = COMPARE[type(how)](left, right)
        if not value:
            break
        left = right
    return value


def _check_size(how: ast.operator, left: Any, right: Any) -> None:
    """Refuse what would take long: results of programs are operands, and may be chosen for it."""
    numbers = [each for each in (left, right) if isinstance(each, int)]
    if len(numbers) == 2 and max(each.bit_length() for each in numbers) > MAX_BITS:
        raise OverflowError("a very large integer")
    if isinstance(how, ast.Pow) and isinstance(left, int) and isinstance(right, int):
        if left.bit_length() * max(right, 0) > MAX_BITS:
            raise OverflowError("a very large power")
    elif isinstance(how, ast.Mod) and isinstance(left, str | bytes):
        if WIDE.search(left if isinstance(left, str) else left.decode("latin-1")):
            raise OverflowError("a very wide format")
    elif isinstance(how, ast.LShift) and isinstance(right, int) and right > MAX_BITS:
        raise OverflowError("a very large shift")
    elif isinstance(how, ast.Mult):
        for items, times in ((left, right), (right, left)):
            repeats = isinstance(items, REPEATED) and isinstance(times, int)
            if repeats and len(items) * max(times, 0) > MAX_ITEMS:
                raise OverflowError("a very long sequence")
