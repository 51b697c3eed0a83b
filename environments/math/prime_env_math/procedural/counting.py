"""Counting and probability."""

from __future__ import annotations

from fractions import Fraction
from math import comb, factorial, perm

from prime_env_math.procedural.problem import Problem, Template, ask
from prime_env_math.procedural.writing import rational

CHOICES = (
    "In how many ways can a committee of {k} be chosen from {n} people?",
    "A shop sells {n} sorts of fruit. In how many ways can {k} different sorts be picked?",
    "How many subsets with exactly {k} elements does a set of {n} elements have?",
)


def choose(n: int, k: int, story: int) -> Problem:
    """Combinations."""
    return ask(
        CHOICES[story].format(n=n, k=k),
        str(comb(n, k)),
        str(perm(n, k)),
        str(comb(n, k - 1)),
        str(comb(n - 1, k)),
    )


def arrange(n: int, k: int) -> Problem:
    """Ordered choices."""
    return ask(
        f"{n} runners start in a race without ties. In how many ways can the first {k} places "
        "be taken?",
        str(perm(n, k)),
        str(comb(n, k)),
        str(n**k),
        str(factorial(n)),
    )


def dice(sides: int, above: int) -> Problem:
    """The probability of a sum of two dice."""
    total = 2 + above
    ways = sum(1 <= total - first <= sides for first in range(1, sides + 1))
    return ask(
        f"Two fair dice, each numbered from 1 to {sides}, are rolled. What is the probability "
        f"that the sum is {total}? Give a fraction.",
        rational(Fraction(ways, sides * sides)),
        rational(Fraction(ways, sides * sides - 1)),
        rational(Fraction(1, 2 * sides - 1)),
        rational(Fraction(ways + 1, sides * sides)),
    )


def draws(red: int, blue: int) -> Problem:
    """Two draws without replacement."""
    both = red + blue
    return ask(
        f"An urn holds {red} red and {blue} blue balls. Two are drawn without replacement. "
        "What is the probability that both are red?",
        rational(Fraction(red * (red - 1), both * (both - 1))),
        rational(Fraction(red * red, both * both)),
        rational(Fraction(red, both)),
        rational(Fraction(blue * (blue - 1), both * (both - 1))),
    )


def shares(total: int, parts: int) -> Problem:
    """Non-negative solutions of a sum."""
    return ask(
        f"In how many ways can {total} identical coins be given to {parts} children, if a child "
        "may get none?",
        str(comb(total + parts - 1, parts - 1)),
        str(comb(total - 1, parts - 1)),
        str(parts**total),
        str(comb(total + parts, parts)),
    )


def words(a: int, b: int, c: int) -> Problem:
    """Arrangements with repeated letters."""
    letters = a + b + c
    found = factorial(letters) // (factorial(a) * factorial(b) * factorial(c))
    tiles = [f"{n} tile{'s' if n > 1 else ''} with {x}" for n, x in ((a, "A"), (b, "B"), (c, "C"))]
    return ask(
        f"How many different words of {letters} letters can be laid with {tiles[0]}, {tiles[1]} "
        f"and {tiles[2]}, using all of them?",
        str(found),
        str(factorial(letters)),
        str(3**letters),
        str(factorial(letters) // (factorial(a) * factorial(b))),
    )


def paths(width: int, height: int, right: int, up: int) -> Problem:
    """Lattice paths that avoid a point."""
    through = comb(right + up, right) * comb(width + height - right - up, width - right)
    every = comb(width + height, width)
    return ask(
        f"A path goes from $(0, 0)$ to $({width}, {height})$ in unit steps to the right or up, "
        f"and doesn't pass through $({right}, {up})$. How many such paths are there?",
        str(every - through),
        str(every),
        str(through),
    )


def apart(n: int, k: int, ring: int) -> Problem:
    """Chairs of which no two are neighbours, in a row or in a ring."""
    row = comb(n - k + 1, k)
    circle = comb(n - k + 1, k) - comb(n - k - 1, k - 2)
    place = "round a circular table" if ring else "in a row"
    gold, other = (circle, row) if ring else (row, circle)
    return ask(
        f"{n} numbered chairs stand {place}. In how many ways can {k} of them be chosen so that "
        "no two chosen chairs are next to each other?",
        str(gold),
        str(other),
        str(comb(n, k)),
    )


def trials(n: int, k: int, sides: int) -> Problem:
    """The binomial distribution."""
    hit = Fraction(1, sides)
    chance = comb(n, k) * hit**k * (1 - hit) ** (n - k)
    return ask(
        f"A wheel has {sides} equal sectors, one of them gold. It is spun {n} times. What is the "
        f"probability that gold comes up exactly {k} time{'s' if k > 1 else ''}?",
        rational(chance),
        rational(hit**k * (1 - hit) ** (n - k)),
        rational(comb(n, k) * hit**k),
    )


TEMPLATES = (
    Template("counting", "choose", 1, (range(6, 31), range(2, 6), range(3)), choose),
    Template("counting", "arrange", 1, (range(5, 31), range(2, 5)), arrange),
    Template("counting", "dice", 2, (range(4, 31), range(7)), dice),
    Template("counting", "draws", 2, (range(2, 26), range(2, 26)), draws),
    Template("counting", "shares", 2, (range(3, 41), range(3, 7)), shares),
    Template("counting", "words", 3, (range(1, 8), range(1, 8), range(1, 8)), words),
    Template("counting", "paths", 3, (range(4, 12), range(4, 12), range(1, 4), range(1, 4)), paths),
    Template("counting", "apart", 3, (range(9, 31), range(2, 5), range(2)), apart),
    Template("counting", "trials", 3, (range(3, 9), range(1, 4), range(2, 8)), trials),
)
