"""The environment `code`: programming problems, own procedural ones or of a data set.

Found through the entry point `environment.code`; importing it costs nothing heavy.
"""

from prime_core.api import Context, EnvironmentSpec, hookimpl
from prime_env_code.environment import CodeEnvironment
from prime_env_code.params import CodeDataset, CodeEnvParams, ProceduralParams

__all__ = [
    "CodeDataset",
    "CodeEnvParams",
    "CodeEnvironment",
    "ProceduralParams",
    "make",
    "prime_environments",
]


def make(params: CodeEnvParams, context: Context) -> CodeEnvironment:
    """Make or read the problems; an unreadable data set is a DatasetError here."""
    return CodeEnvironment(params, context)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register the environment."""
    return [
        EnvironmentSpec(
            name="code",
            params=CodeEnvParams,
            factory=make,
            summary="Programming problems with tests: own procedural ones and public data sets",
        )
    ]
