"""Answers as short texts, for evidence and explanations; bounded whatever the answer holds."""

from __future__ import annotations

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
    Piece,
    Region,
    Relation,
    Text,
    Value,
)
from prime_verifier_math.tree import Add, Call, Const, Mul, Node, Num, Pow, Sym

LIMIT = 200  # characters


def type_name(answer: Answer) -> str:
    """The answer's type as the documents name it."""
    if isinstance(answer, Value):
        return _value_type(answer)
    if isinstance(answer, Listing):
        return {"set": "set", "pm": "plus-minus"}.get(answer.kind, "list")
    if isinstance(answer, Ordered):
        return "tuple"
    if isinstance(answer, Colon):
        return "time" if answer.half else "ratio or time"
    names: dict[type, str] = {
        Text: "text", Choice: "choice", Boolean: "boolean", Absent: "undefined",
        Based: "number in a base", Region: "set of reals", Relation: "inequality",
        Equation: "equation", Matrix: "matrix", Opaque: "unreadable",
        Congruence: "residue class",
    }  # fmt: skip
    return names[type(answer)]


def _value_type(value: Value) -> str:
    if value.percent:
        return "percentage"
    if value.unit is not None:
        if value.unit.dimensions in ((("money", 1),), (("euro", 1),)):
            return "currency"
        return "angle" if value.unit.dimensions == (("angle", 1),) else "quantity"
    node = value.node
    if isinstance(node, Num):
        if node.places is not None:
            return "decimal"
        return "integer" if node.value.denominator == 1 else "rational"
    if tree.signed_infinity(node):
        return "infinity"
    if any(one == Const("i") for one in tree.walk(node)):
        return "complex"
    return "expression" if tree.symbols(node) else "number"


def form(answer: Answer) -> str:
    """The normal form, cut at LIMIT characters."""
    text = _form(answer)
    return text if len(text) <= LIMIT else text[: LIMIT - 3] + "..."


def _form(answer: Answer) -> str:
    if isinstance(answer, Value):
        text = node_form(answer.node)
        unit = f" [{answer.unit.name}]" if answer.unit else ""
        return f"{text}{unit}{' (percent)' if answer.percent else ''}"
    if isinstance(answer, Listing):
        inner = ", ".join(_form(item) for item in answer.items[:20])
        return f"{{{inner}}}"
    if isinstance(answer, Ordered):
        inner = ", ".join(_form(item) for item in answer.items[:20])
        return f"{answer.opening}{inner}{answer.closing}"
    if isinstance(answer, Region):
        return " u ".join(_piece(piece) for piece in answer.pieces[:20]) or "{}"
    if isinstance(answer, Equation):
        if answer.label is not None:
            return f"{answer.label[:40]} = {_form(answer.right)}"
        left, right = answer.sides or (tree.ZERO, tree.ZERO)
        return f"{node_form(left)} = {node_form(right)}"
    if isinstance(answer, Relation):
        sign = "!=" if answer.unequal else (">" if answer.strict else ">=")
        return f"{node_form(answer.node)} {sign} 0"
    if isinstance(answer, Matrix):
        rows = ("[" + ", ".join(node_form(n) for n in row[:20]) + "]" for row in answer.rows[:20])
        return "[" + ", ".join(rows) + "]"
    if isinstance(answer, Colon):
        return ":".join(node_form(part) for part in answer.parts) + answer.half
    if isinstance(answer, Congruence):
        return f"{answer.name}={answer.residue} mod {answer.modulus}".lstrip("=")
    if isinstance(answer, Based):
        return f"{'-' * answer.negative}{answer.digits[:100]}_{answer.base}"
    if isinstance(answer, Text):
        return answer.words
    if isinstance(answer, Choice):
        return f"({answer.letter})"
    if isinstance(answer, Boolean):
        return str(answer.value).lower()
    if isinstance(answer, Absent):
        return "undefined"
    return answer.text[:LIMIT]


def _piece(piece: Piece) -> str:
    left = "[" if piece.low_closed else "("
    right = "]" if piece.high_closed else ")"
    return f"{left}{node_form(piece.low)}, {node_form(piece.high)}{right}"


def node_form(node: Node, room: int = LIMIT) -> str:
    """An expression as text; what has no room left is cut."""
    if room <= 0:
        return "..."
    if isinstance(node, Num):
        return _number(node)
    if isinstance(node, Sym | Const):
        return node.name
    if isinstance(node, Pow):
        if node.exponent == tree.MINUS_ONE:
            return f"1/{_grouped(node.base, room - 2)}"
        return f"{_grouped(node.base, room - 1)}^{_grouped(node.exponent, room - 1)}"
    if isinstance(node, Add):
        return _joined(node.terms, " + ", room)
    if isinstance(node, Mul):
        return _joined(node.factors, "*", room)
    assert isinstance(node, Call)
    return f"{node.name}({_joined(node.args, ', ', room - len(node.name))})"


def _number(node: Num) -> str:
    value = node.value
    if value.numerator.bit_length() + value.denominator.bit_length() > 3 * LIMIT:
        return f"a number of {value.numerator.bit_length()} bits"
    return str(value)


def _grouped(node: Node, room: int) -> str:
    text = node_form(node, room - 2)
    return f"({text})" if isinstance(node, Add | Mul | Pow) else text


def _joined(nodes: tuple[Node, ...], joint: str, room: int) -> str:
    parts: list[str] = []
    for node in nodes:
        part = _grouped(node, room) if joint == "*" else node_form(node, room)
        parts.append(part)
        room -= len(part) + len(joint)
        if room <= 0:
            parts.append("...")
            break
    return joint.join(parts)
