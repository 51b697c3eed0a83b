"""The environment `jsonl`: tasks from any file in the GENESYS schema or through a column mapping.

Found through the entry point `environment.jsonl`; importing it costs nothing heavy.
"""

from prime_core.api import Context, EnvironmentSpec, hookimpl
from prime_env_jsonl.environment import JsonlEnvironment
from prime_env_jsonl.params import JsonlParams

__all__ = ["JsonlEnvironment", "JsonlParams", "make", "prime_environments"]


def make(params: JsonlParams, context: Context) -> JsonlEnvironment:
    """Read the tasks; a bad file or row is a DatasetError here, before the run starts."""
    return JsonlEnvironment(params, context)


@hookimpl
def prime_environments() -> list[EnvironmentSpec]:
    """Register the environment."""
    return [
        EnvironmentSpec(
            name="jsonl",
            params=JsonlParams,
            factory=make,
            summary="Tasks from a JSONL or Parquet file, GENESYS schema or column mapping",
        )
    ]
