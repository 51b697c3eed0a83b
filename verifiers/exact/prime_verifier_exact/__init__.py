"""The verifier `exact`: a text, or the number after `####`, must equal the gold answer.

Found through the entry point `verifier.exact`; runs in environment hosts.
"""

from prime_core.api import Context, Verifier, VerifierSpec, hookimpl
from prime_verifier_exact.params import ExactParams
from prime_verifier_exact.verifier import NumberVerifier, TextVerifier

__all__ = ["ExactParams", "NumberVerifier", "TextVerifier", "make", "prime_verifiers"]


def make(params: ExactParams, context: Context) -> Verifier:
    """The verifier of the mode that the parameters name."""
    return NumberVerifier(params) if params.mode == "number" else TextVerifier(params)


@hookimpl
def prime_verifiers() -> list[VerifierSpec]:
    """Register the verifier."""
    return [
        VerifierSpec(
            name="exact",
            params=ExactParams,
            factory=make,
            summary="Exact text, or the number after ####",
        )
    ]
