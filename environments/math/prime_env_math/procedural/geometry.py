"""Geometry: lengths, areas, volumes, coordinates."""

from __future__ import annotations

from fractions import Fraction

from prime_env_math.procedural.problem import Problem, Template, ask
from prime_env_math.procedural.writing import pair, polynomial, rational, surd, times

PI = r"\pi"
ANGLES = (20, 30, 36, 40, 45, 60, 72, 75, 80, 90, 120, 135, 150, 160, 210, 240)


def hypotenuse(a: int, b: int) -> Problem:
    """The theorem of Pythagoras."""
    return ask(
        f"The legs of a right triangle have lengths {a} and {b}. How long is the hypotenuse? "
        "Give the exact value.",
        surd(0, 1, a * a + b * b),
        str(a + b),
        str(a * a + b * b),
        surd(0, 1, a + b),
    )


def triangle_area(base: int, height: int) -> Problem:
    """Half of base times height."""
    return ask(
        f"A triangle has a base of length {base} and a height of {height} on it. What is its area?",
        rational(Fraction(base * height, 2)),
        rational(base * height),
        rational(Fraction(base + height, 2)),
    )


def circle_area(diameter: int) -> Problem:
    """A circle's area from its diameter."""
    return ask(
        f"What is the exact area of a circle with diameter {diameter}?",
        times(Fraction(diameter * diameter, 4), PI),
        times(diameter * diameter, PI),
        times(diameter, PI),
        rational(Fraction(diameter * diameter, 4)),
    )


def distance(x: int, y: int, right: int, up: int) -> Problem:
    """The distance of two points."""
    return ask(
        f"What is the exact distance between the points $({x}, {y})$ and "
        f"$({x + right}, {y + up})$?",
        surd(0, 1, right * right + up * up),
        str(right * right + up * up),
        str(right + up),
        surd(0, 1, right + up),
    )


def polygon_angle(sides: int) -> Problem:
    """The interior angle of a regular polygon."""
    return ask(
        f"How many degrees has each interior angle of a regular polygon with {sides} sides? "
        "Give the exact number.",
        rational(Fraction(180 * (sides - 2), sides)),
        rational(Fraction(360, sides)),
        rational(180 * (sides - 2)),
    )


def shoelace(x: int, y: int, left: int, up: int, shift: int) -> Problem:
    """The area of a triangle from its corners; never zero, since left <= 0 < up and x > 0."""
    double = x * up - y * left
    corners = [(shift, -shift), (x + shift, y - shift), (left + shift, up - shift)]
    named = ", ".join(f"$({a}, {b})$" for a, b in corners)
    return ask(
        f"What is the area of the triangle with the corners {named}?",
        rational(Fraction(double, 2)),
        rational(double),
        rational(Fraction(abs(x * up + y * left), 2)),
    )


def circle_centre(x: int, y: int, radius: int) -> Problem:
    """The centre of a circle from its equation."""
    right = radius * radius - x * x - y * y
    left = f"x^2 + y^2{_plus(polynomial((-2 * x, 0)))}{_plus(polynomial((-2 * y, 0), 'y'))}"
    return ask(
        f"The equation ${left} = {right}$ describes a circle. Give its centre as an ordered pair.",
        pair(x, y),
        pair(-x, -y),
        pair(2 * x, 2 * y),
        pair(y, x),
    )


def _plus(text: str) -> str:
    if text == "0":
        return ""
    return text if text.startswith("-") else f"+{text}"


def equilateral(side: int) -> Problem:
    """The area of an equilateral triangle."""
    return ask(
        f"What is the exact area of an equilateral triangle with side length {side}?",
        surd(0, Fraction(side * side, 4), 3),
        surd(0, Fraction(side * side, 2), 3),
        surd(0, Fraction(side, 4), 3),
        rational(Fraction(side * side, 2)),
    )


def sphere(radius: int) -> Problem:
    """A sphere's volume."""
    return ask(
        f"What is the exact volume of a sphere with radius {radius}?",
        times(Fraction(4 * radius**3, 3), PI),
        times(4 * radius * radius, PI),
        times(radius**3, PI),
        times(Fraction(4 * radius**2, 3), PI),
    )


def sector(radius: int, angle: int) -> Problem:
    """The area of a sector."""
    return ask(
        f"A sector of a circle with radius {radius} has a central angle of ${angle}^\\circ$. "
        "What is its exact area?",
        times(Fraction(radius * radius * angle, 360), PI),
        times(Fraction(2 * radius * angle, 360), PI),
        times(Fraction(radius * radius * angle, 180), PI),
    )


TEMPLATES = (
    Template("geometry", "hypotenuse", 1, (range(1, 41), range(1, 41)), hypotenuse),
    Template("geometry", "triangle_area", 1, (range(2, 61), range(2, 61)), triangle_area),
    Template("geometry", "circle_area", 2, (range(2, 201),), circle_area),
    Template("geometry", "distance", 2,
             (range(-6, 7), range(-6, 7), range(1, 10), range(1, 10)), distance),
    Template("geometry", "polygon_angle", 2, (range(5, 101),), polygon_angle),
    Template("geometry", "shoelace", 3,
             (range(1, 10), range(9), range(-8, 1), range(1, 10), range(-3, 4)), shoelace),
    Template("geometry", "circle_centre", 3,
             (range(-9, 10), range(-9, 10), range(1, 10)), circle_centre),
    Template("geometry", "equilateral", 3, (range(3, 121),), equilateral),
    Template("geometry", "sphere", 3, (range(2, 81),), sphere),
    Template("geometry", "sector", 3, (range(2, 61), ANGLES), sector),
)  # fmt: skip
