"""Slightly wrong copies of a right program: what a problem's tests ought to see.

Called by the proofs of verifiers; a copy isn't wrong until some test says so. Invariant: the same
source gives the same copies, in the order of the source.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from prime_verifier_code import expressions

MutationName = Literal["off_by_one", "operator", "dropped_branch"]

OPERATORS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed copy.

    Attributes:
        mutation: what was changed.
        line: where, in the original.
        source: the copy.
    """

    mutation: MutationName
    line: int
    source: str


def mutants(source: str) -> Iterator[Mutant]:
    """Every copy with one change.

    Raises:
        ValueError: the source is no Python.
    """
    tree = expressions.parse(source)
    for number, node in enumerate(ast.walk(tree)):
        mutation = _mutation_of(node)
        if mutation is None:
            continue
        changed = copy.deepcopy(tree)
        twin = next(each for i, each in enumerate(ast.walk(changed)) if i == number)
        _change(twin)
        text = ast.unparse(ast.fix_missing_locations(changed))
        yield Mutant(mutation, getattr(node, "lineno", 0), text)


def _mutation_of(node: ast.AST) -> MutationName | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return "off_by_one"
    if isinstance(node, ast.If):
        return "dropped_branch"
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in OPERATORS:
        return "operator"
    if isinstance(node, ast.Compare) and type(node.ops[0]) in OPERATORS:
        return "operator"
    return None


def _change(node: ast.AST) -> None:
    if isinstance(node, ast.Constant):
        assert isinstance(node.value, int)
        node.value += 1
    elif isinstance(node, ast.If):
        node.test = ast.Constant(False)
    elif isinstance(node, ast.BinOp | ast.BoolOp):
        node.op = OPERATORS[type(node.op)]()  # type: ignore[assignment]
    else:
        assert isinstance(node, ast.Compare)
        node.ops[0] = OPERATORS[type(node.ops[0])]()  # type: ignore[call-overload]
