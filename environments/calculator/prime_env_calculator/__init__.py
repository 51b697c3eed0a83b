"""The environment `calculator`: word problems, and a calculator that answers between turns.

Found through the entry point `environment.calculator`; importing it costs nothing heavy.
"""

from prime_core.api import Context, EnvironmentSpec, hookimpl
from prime_env_calculator.environment import CalculatorEnvironment
from prime_env_calculator.params import CalculatorParams

__all__ = ["CalculatorEnvironment", "CalculatorParams", "make", "prime_environments"]


def make(params: CalculatorParams, context: Context) -> CalculatorEnvironment:
    """The environment that the parameters describe."""
    return CalculatorEnvironment(params)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register the environment."""
    return [
        EnvironmentSpec(
            name="calculator",
            params=CalculatorParams,
            factory=make,
            summary="Word problems in several turns, with a calculator as the tool",
        )
    ]
