"""Number theory: divisors, remainders, bases, congruences."""

from __future__ import annotations

from math import gcd, lcm, prod

from prime_env_math.procedural.problem import Problem, Template, ask
from prime_env_math.procedural.writing import in_base

PRIMES = (11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
MODULI = ((3, 5, 7), (4, 5, 9), (5, 7, 8), (5, 6, 7), (7, 9, 11), (4, 7, 13))  # pairwise coprime


def greatest_common_divisor(sixths: int, quarters: int) -> Problem:
    """The gcd of a multiple of 6 and a multiple of 4."""
    a, b = 6 * sixths, 4 * quarters
    found = gcd(a, b)
    return ask(
        f"What is the greatest common divisor of {a} and {b}?",
        str(found),
        str(lcm(a, b)),
        str(2 * found),
        str(found // 2),
    )


def remainder(number: int, modulus: int) -> Problem:
    """A remainder."""
    found = number % modulus
    return ask(
        f"What is the remainder when {number} is divided by {modulus}?",
        str(found),
        str(number // modulus),
        str(modulus - found),
        str(found + 1),
    )


def factors(number: int) -> dict[int, int]:
    """Prime factors and their powers."""
    found: dict[int, int] = {}
    divisor = 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            number //= divisor
            found[divisor] = found.get(divisor, 0) + 1
        divisor += 1
    if number > 1:
        found[number] = found.get(number, 0) + 1
    return found


def divisor_count(number: int) -> Problem:
    """How many divisors."""
    powers = factors(number)
    found = prod(power + 1 for power in powers.values())
    return ask(
        f"How many positive divisors does {number} have?",
        str(found),
        str(found - 2),
        str(prod(powers.values())),
        str(sum(powers.values())),
    )


def least_common_multiple(a: int, b: int) -> Problem:
    """The lcm."""
    return ask(
        f"What is the least common multiple of {a} and {b}?",
        str(lcm(a, b)),
        str(gcd(a, b)),
        str(2 * lcm(a, b)),
        str(a * b),
    )


def base(number: int, to: int) -> Problem:
    """A number written in another base."""
    digits = in_base(number, to)
    return ask(
        f"Write the decimal number {number} in base {to}. Give the base as a subscript.",
        f"{digits}_{{{to}}}",
        f"{digits}_{{{to + 1}}}",
        f"{in_base(number + 1, to)}_{{{to}}}",
    )


def inverse(prime: int, number: int) -> Problem:
    """A modular inverse."""
    found = pow(number, -1, prime)
    return ask(
        f"Find the integer $x$ with $0 < x < {prime}$ and ${number}x \\equiv 1 \\pmod{{{prime}}}$.",
        str(found),
        str(prime - found),
        str(pow(number, 2, prime)),
    )


def power(number: int, exponent: int, modulus: int) -> Problem:
    """The remainder of a large power."""
    found = pow(number, exponent, modulus)
    return ask(
        f"Find the remainder when ${number}^{{{exponent}}}$ is divided by {modulus}.",
        str(found),
        str(pow(number, exponent + 1, modulus)),
        str(pow(number, exponent - 1, modulus)),
        str((found + 1) % modulus),
    )


def congruences(which: int, number: int) -> Problem:
    """The smallest number with three given remainders."""
    moduli = MODULI[which]
    parts = [f"{number % modulus} when divided by {modulus}" for modulus in moduli]
    return ask(
        f"What is the smallest positive integer that leaves a remainder of {parts[0]}, "
        f"{parts[1]}, and {parts[2]}?",
        str(number),
        str(number + prod(moduli)),
        str(number + moduli[0] * moduli[1]),
        str(number + 1),
    )


def trailing_zeros(number: int) -> Problem:
    """How many zeros end a factorial."""
    found, left = 0, number
    while left := left // 5:
        found += left
    return ask(
        f"How many zeros are at the end of the decimal writing of ${number}!$?",
        str(found),
        str(number // 5),
        str(number // 10),
        str(found + 1),
    )


def divisor_sum(number: int) -> Problem:
    """The sum of all divisors."""
    found = prod((p ** (power + 1) - 1) // (p - 1) for p, power in factors(number).items())
    return ask(
        f"What is the sum of all positive divisors of {number}?",
        str(found),
        str(found - number),
        str(found - 1),
        str(sum(factors(number))),
    )


TEMPLATES = (
    Template("number_theory", "gcd", 1, (range(2, 80), range(3, 110)), greatest_common_divisor),
    Template("number_theory", "remainder", 1, (range(100, 1000), range(3, 41)), remainder),
    Template("number_theory", "divisor_count", 2, (range(60, 4000),), divisor_count),
    Template("number_theory", "lcm", 2, (range(4, 61), range(61, 121)), least_common_multiple),
    Template("number_theory", "base", 2, (range(50, 3000), range(2, 10)), base),
    Template("number_theory", "inverse", 2, (PRIMES, range(2, 11)), inverse),
    Template("number_theory", "power", 3, (range(2, 31), range(20, 201), range(7, 100)), power),
    Template("number_theory", "congruences", 3, (range(len(MODULI)), range(1, 106)), congruences),
    Template("number_theory", "trailing_zeros", 3, (range(30, 3000),), trailing_zeros),
    Template("number_theory", "divisor_sum", 3, (range(20, 1500),), divisor_sum),
)
