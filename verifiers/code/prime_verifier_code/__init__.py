"""The verifier `code`: model-written Python, judged in a jail by the tests of a task.

Found through the entry point `verifier.code`; importing it costs nothing heavy.
"""

from prime_core.api import Context, VerifierSpec, hookimpl
from prime_verifier_code.checkers import Checker
from prime_verifier_code.params import CodeParams
from prime_verifier_code.problem import Problem, ProblemError
from prime_verifier_code.schemas import read_problem
from prime_verifier_code.verifier import CodeVerifier

__all__ = [
    "Checker",
    "CodeParams",
    "CodeVerifier",
    "Problem",
    "ProblemError",
    "make",
    "prime_verifiers",
    "read_problem",
]


def make(params: CodeParams, context: Context) -> CodeVerifier:
    """Judge with the host's sandbox; one that holds less than the parameters ask is refused."""
    return CodeVerifier(params, context.sandbox(params.min_isolation))


@hookimpl
def prime_verifiers() -> list[VerifierSpec]:
    """Register the verifier."""
    return [
        VerifierSpec(
            name="code",
            params=CodeParams,
            factory=make,
            summary="Runs model-written Python in a jail; exact tests, nothing expected inside",
        )
    ]
