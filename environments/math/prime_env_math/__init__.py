"""The environment `math`: public data sets by name, and procedural problems that need no network.

Found through the entry point `environment.math`; importing it costs nothing heavy.
"""

from prime_core.api import Context, EnvironmentSpec, hookimpl
from prime_env_math.environment import MathEnvironment
from prime_env_math.params import MathParams

__all__ = ["MathEnvironment", "MathParams", "make", "prime_environments"]


def make(params: MathParams, context: Context) -> MathEnvironment:
    """Make or read the tasks; bad rows and overlaps are a DatasetError here, before the run."""
    return MathEnvironment(params, context)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register the environment."""
    return [
        EnvironmentSpec(
            name="math",
            params=MathParams,
            factory=make,
            summary="Mathematics: data sets by name, procedural problems with exact answers",
        )
    ]
