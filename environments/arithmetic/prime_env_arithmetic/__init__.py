"""The environment `arithmetic`: procedural problems with an exact verifier.

Found through the entry point `environment.arithmetic`; importing it costs nothing heavy.
"""

from prime_core.api import Context, EnvironmentSpec, hookimpl
from prime_env_arithmetic.environment import ArithmeticEnvironment, RetryEnvironment
from prime_env_arithmetic.params import ArithmeticParams

__all__ = ["ArithmeticEnvironment", "ArithmeticParams", "make", "prime_environments"]


def make(params: ArithmeticParams, context: Context) -> ArithmeticEnvironment:
    """The environment that the parameters describe; only the kind retry answers the model."""
    return RetryEnvironment(params) if params.kind == "retry" else ArithmeticEnvironment(params)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register the environment."""
    return [
        EnvironmentSpec(
            name="arithmetic",
            params=ArithmeticParams,
            factory=make,
            summary="Procedural arithmetic, exact answers, held-out tasks by hash",
        )
    ]
