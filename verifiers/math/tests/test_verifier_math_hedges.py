"""A second live candidate in the prose beside a box is a hedge; a restatement isn't."""

from __future__ import annotations

import pytest
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())


def value(gold: str, completion: str) -> float | None:
    return VERIFIER.explain(gold, completion).value


@pytest.mark.parametrize(
    "completion",
    [
        r"So \boxed{4} (or 5 if counting zero).",
        r"So $\boxed{4}$ (or $5$ if we count zero).",
        r"So $\boxed{4}$ (or 5).",
        r"So $\boxed{4}$ (or maybe 5?)",
        r"So $\boxed{4}$ [or 5]",
        r"So $\boxed{4}$ - or 5 when zero counts.",
        r"So $\boxed{4}$ — or 5.",
        r"So \boxed{4}, or 5 if zero counts.",
        r"So \boxed{4} or $5$.",
        r"So \boxed{4}, or else 5.",
        r"So \boxed{4}, or possibly 5.",
        r"So \boxed{4}, or, if we count zero, 5.",
        r"So \boxed{4}, possibly 5.",
        r"So \boxed{4} (maybe 5).",
        r"So \boxed{4} (perhaps $5$)",
        r"So \boxed{4} apples (or 5 if counting the rotten one).",
        r"So \boxed{4} (alternatively 5).",
        r"So \boxed{4}. Or 5.",
        r"So \boxed{4}, but it could also be 5.",
        r"So \boxed{4}. It might be $5$.",
        r"The answer is 4, but it may be 5.",
        r"So \boxed{4}. Or perhaps $5$ if zero counts.",
        r"So \boxed{4} (or 5 apples).",
        r"So \boxed{4} or \boxed{5}.",
        r"So \boxed{4} (or \boxed{5} if counting zero).",
        r"So \boxed{5} (or \boxed{4} if counting zero).",
        r"It is 5 or \boxed{4}.",
        r"It is $5$ or $\boxed{4}$.",
        r"It is 5, or maybe \boxed{4}.",
        r"It is 5 (or \boxed{4}).",
        r"(or 5?) \boxed{4}",
        r"It is either 5 or $x = \boxed{4}$.",
        r"Maybe 5, perhaps \boxed{4}.",
    ],
)
def test_a_second_candidate_is_a_hedge(completion: str) -> None:
    assert value("4", completion) == 0.0


@pytest.mark.parametrize(
    ("gold", "completion"),
    [
        ("4", r"So \boxed{4}, or equivalently $8/2$."),
        ("4", r"So \boxed{4} (or 8/2)."),
        ("4", r"So \boxed{4} (or 4.0)."),
        ("4", r"So \boxed{4} (or $x = 4$)."),
        ("4", r"So \boxed{4} (or four)."),
        ("4", r"It is 8/2 or \boxed{4}."),
        ("4", r"There are \boxed{4} (or more precisely, 4 distinct) roots."),
        ("4", r"So \boxed{4}. Or you can see it in 2 steps."),
        ("4", r"So \boxed{4} (as in step 5)."),
        ("4", r"So \boxed{4}, not 5."),
        ("4", r"So \boxed{4} (we used 5 or 6 lemmas)."),
        ("0.5", r"So \boxed{0.5} (or 50\%)."),
        ("0.5", r"So $\boxed{0.5}$ or $\frac{1}{2}$."),
        (r"\frac52", r"So \boxed{\frac52} (or 2 1/2)."),
        (r"\frac52", r"So \boxed{\frac52} (or 2.5)."),
        (r"\frac13", r"So \boxed{\frac13} (or about 0.33)."),
        (r"\frac13", r"So \boxed{\frac13} (or 0.33)."),
        (r"\frac13", r"So \boxed{\frac13} (or approximately 33%)."),
        (r"\frac13", r"So \boxed{\frac13} (or $\approx 0.33$)."),
        (r"\frac13", r"So \boxed{\frac13} (or 1 out of 3)."),
        ("150", r"So \boxed{150} cm (or 1.5 m)."),
        ("150", r"So \boxed{150\text{ cm}} (or 1.5 m)."),
        ("150", r"So \boxed{150\text{ cm}}, or 1.5 meters."),
        ("90", r"So \boxed{90} minutes (or 1.5 hours)."),
        ("90", r"So \boxed{90} (or 1.5 hours)."),
        ("24", r"So \boxed{24} (or 2 dozen)."),
        ("10_2", r"So \boxed{10_2} (or 2 in base 10)."),
        ("x+1", r"So \boxed{x+1} (or $1+x$)."),
        ("x+1", r"It is $1 + x$ or \boxed{x+1}."),
        ("B", r"So \boxed{B} (or 12)."),
        ("5", r"Since 2 or 3 divides it in step 2. So \boxed{5}."),
        ("4", r"So \boxed{4}. Possibly 2 other methods exist."),
        ("4", r"So \boxed{4}. Alternatively, $3x = 12$ gives it."),
        ("4", r"So \boxed{4}. Alternatively, 3x = 12 gives it."),
        ("4", r"So \boxed{4} (or $3x = 12$)."),
        ("4", r"So \boxed{4}, or $2\cdot2$."),
        ("5", r"So \boxed{5} m (or 5m)."),
        (r"\frac{\pi}{6}", r"So \boxed{\frac{\pi}{6}} (or $30^\circ$)."),
        ("2, 3", r"So \boxed{2, 3} (or 3, 2)."),
    ],
)
def test_a_restatement_is_no_hedge(gold: str, completion: str) -> None:
    assert value(gold, completion) == 1.0


@pytest.mark.parametrize(
    "completion",
    [
        r"So \boxed{4}. It could be shown in 2 other ways.",
        r"So \boxed{4}, but it might be written as $2^2$.",
        r"The answer is 4, but it could be written as $2^2$.",
        r"The answer is 4, but it could take 3 more lines to prove.",
    ],
)
def test_a_remark_on_the_answer_is_no_second_one(completion: str) -> None:
    assert value("4", completion) == 1.0


@pytest.mark.parametrize(
    ("gold", "completion", "expected"),
    [
        (r"\frac12", r"It is \boxed{0.5}, that is, \boxed{\frac{1}{2}}.", 1.0),
        (r"\frac12", r"It is \boxed{0.5}, maybe \boxed{\frac{1}{3}}.", 0.0),
        (r"\frac12", r"It is \boxed{0.4}, that is, \boxed{\frac{1}{2}}.", 0.0),
        (r"5\%", r"It is \boxed{5}, perhaps \boxed{0.05}.", 0.0),
    ],
)
def test_two_boxes_of_one_value_are_no_hedge(gold: str, completion: str, expected: float) -> None:
    assert value(gold, completion) == expected
