"""Assertion blocks (HumanEval, MBPP) taken apart into calls and expressions over their results.

Called when such a problem is read; the candidate then only ever sees arguments, and what was
expected of it stays outside its jail. What has another form raises `Unsupported`, and the block
runs in a second jail instead.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import Any

from prime_verifier_code import expressions
from prime_verifier_code.expressions import Unsupported

MAX_SOURCE = 4 * 2**20  # characters of a block
CHECK = "check"  # HumanEval's function that holds the assertions


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the candidate with plain values."""

    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Assertion:
    """One `assert`: the calls it makes, and what must be true of their results.

    `expression` refers to the results as `result_0`, `result_1`... and to `names`.
    """

    calls: tuple[Call, ...]
    expression: ast.expr
    names: Mapping[str, Any]

    def holds(self, results: list[Any]) -> bool:
        """Whether the assertion is true of these results.

        An exception of the expression is a failed assertion, as it is in Python.
        """
        given = {f"result_{i}": result for i, result in enumerate(results)}
        try:
            return bool(expressions.evaluate(self.expression, {**self.names, **given}))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return False
        except (MemoryError, RecursionError):
            return False


def take_apart(source: str, entry_point: str) -> list[Assertion]:
    """The assertions of a block.

    Args:
        source: assert statements, or a function `check(candidate)` that holds them.
        entry_point: the function under test; `candidate` is another name of it inside `check`.

    Raises:
        Unsupported: the block holds anything but assertions, constants and `import math`.
    """
    if len(source) > MAX_SOURCE:
        raise Unsupported(f"a block of {len(source)} characters")
    try:
        body = expressions.parse(source).body
    except ValueError as error:
        raise Unsupported(str(error)) from error
    reader = _Reader({entry_point})
    for statement in body:
        if isinstance(statement, ast.FunctionDef) and statement.name == CHECK:
            reader.check_function(statement)
        elif not _calls_check(statement):
            reader.statement(statement)
    if not reader.assertions:
        raise Unsupported("no assertion")
    return reader.assertions


def called_function(source: str) -> str | None:
    """The function that assertions call (MBPP), rather one that Python itself doesn't have."""
    try:
        tree = expressions.parse(source)
    except ValueError:
        return None
    named = [
        node.func.id
        for statement in ast.walk(tree)
        if isinstance(statement, ast.Assert)
        for node in ast.walk(statement.test)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    own = [name for name in named if not hasattr(builtins, name)]
    # A problem may ask for a function that Python has, such as sum.
    return next(iter(own or named), None)


def _calls_check(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and expressions.dotted(statement.value.func) == CHECK
    )


class _Reader:
    """Walks statements in order; keeps what names stand for, and the assertions so far."""

    def __init__(self, candidates: Set[str]) -> None:
        self.assertions: list[Assertion] = []
        self._candidates = set(candidates)
        self._names: dict[str, Any] = {}

    def check_function(self, function: ast.FunctionDef) -> None:
        arguments = function.args.args
        if len(arguments) != 1 or function.decorator_list:
            raise Unsupported("a check with other arguments than the candidate")
        self._candidates.add(arguments[0].arg)
        for statement in function.body:
            self.statement(statement)

    def statement(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assert):
            self._assertion(statement)
        elif isinstance(statement, ast.Assign):
            self._assign(statement)
        elif isinstance(statement, ast.Import):
            if any(alias.name != "math" or alias.asname for alias in statement.names):
                raise Unsupported(f"the import {ast.unparse(statement)[:40]}")
        elif not isinstance(statement, ast.Pass) and not _does_nothing(statement):
            raise Unsupported(f"a statement {type(statement).__name__}")

    def _assign(self, statement: ast.Assign) -> None:
        target = statement.targets[0]
        if len(statement.targets) != 1 or not isinstance(target, ast.Name):
            raise Unsupported("an assignment to more than a name")
        if target.id in self._candidates:
            raise Unsupported("an assignment to the candidate")
        self._names[target.id] = self._value(statement.value)

    def _value(self, node: ast.expr) -> Any:
        expressions.check(node, frozenset(self._names))
        try:
            return expressions.evaluate(node, self._names)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise Unsupported(f"an expression that fails: {error}") from error

    def _assertion(self, statement: ast.Assert) -> None:
        lifted = _Lift(self._candidates)
        test = lifted.visit(statement.test)
        given = {*self._names, *(f"result_{i}" for i in range(len(lifted.calls)))}
        expressions.check(test, frozenset(given))
        if not lifted.calls:
            if not self._value(test):
                raise Unsupported("an assertion that is false of itself")
            return
        calls = tuple(self._call(node) for node in lifted.calls)
        self.assertions.append(Assertion(calls, test, dict(self._names)))

    def _call(self, node: ast.Call) -> Call:
        if any(isinstance(each, ast.Starred) for each in node.args):
            raise Unsupported("a starred argument")
        kwargs = {each.arg: self._value(each.value) for each in node.keywords if each.arg}
        if len(kwargs) != len(node.keywords):
            raise Unsupported("a double starred argument")
        return Call(tuple(self._value(each) for each in node.args), kwargs)


def _does_nothing(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant | ast.Name)


class _Lift(ast.NodeTransformer):
    """Replaces each call of the candidate by the name of its result."""

    def __init__(self, candidates: Set[str]) -> None:
        self.calls: list[ast.Call] = []
        self._candidates = candidates

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if expressions.dotted(node.func) not in self._candidates:
            return self.generic_visit(node)
        name = ast.Name(f"result_{len(self.calls)}", ast.Load())
        self.calls.append(node)
        return name

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        before = len(self.calls)
        lifted = self.generic_visit(node)
        # `a or f(x)` may leave f uncalled; calling it anyway could fail what Python passes.
        if isinstance(node.op, ast.Or) and len(self.calls) > before:
            raise Unsupported("a call behind `or`")
        return lifted

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        before = len(self.calls)
        lifted = self.generic_visit(node)
        if len(self.calls) > before:
            raise Unsupported("a call in a conditional")
        return lifted
