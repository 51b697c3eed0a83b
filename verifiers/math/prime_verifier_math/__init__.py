"""The verifier `math`: typed, exact and bounded judgement of mathematical answers.

Found through the entry point `verifier.math`; runs in environment hosts. sympy and mpmath are
imported only where a comparison needs them.
"""

from prime_core.api import Context, VerifierSpec, hookimpl
from prime_verifier_math.golds import GoldReport
from prime_verifier_math.params import MathParams
from prime_verifier_math.verifier import Explanation, MathVerifier

__all__ = ["Explanation", "GoldReport", "MathParams", "MathVerifier", "make", "prime_verifiers"]


def make(params: MathParams, context: Context) -> MathVerifier:
    """The verifier with these parameters."""
    return MathVerifier(params)


@hookimpl
def prime_verifiers() -> list[VerifierSpec]:
    """Register the verifier."""
    return [
        VerifierSpec(
            name="math",
            params=MathParams,
            factory=make,
            summary="Typed mathematical answers, exact and bounded",
        )
    ]
