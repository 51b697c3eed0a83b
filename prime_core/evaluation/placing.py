"""Where work is done: in this process, or by workers of a Ray cluster (`--on`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prime_core.api.errors import RunError
from prime_core.evaluation.crew import Crew, LocalCrew

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.hosting.pool import HostPool

LOCAL = "local"


def is_ray(on: str) -> bool:
    """Whether `--on` means a Ray cluster.

    Raises:
        RunError: it means nothing.
    """
    if on == "ray" or on.startswith("ray://"):
        return True
    if on == LOCAL:
        return False
    raise RunError(
        f"there is no place {on!r}", where="--on", fix="give local, ray or ray://HOST:PORT"
    )


def worker_count(on: str, wanted: int | None) -> int:
    """How many workers there will be: as many as wanted, else one a CPU (of the cluster).

    Raises:
        RunError: no cluster.
    """
    if wanted is not None:
        return wanted
    if is_ray(on):
        from prime_core.evaluation.ray_crew import connect

        return max(1, int(connect(on).cluster_resources().get("CPU", 1)))
    from os import sched_getaffinity

    return len(sched_getaffinity(0))


def make_crew(on: str, workers: int, pool: HostPool, policy: PolicyFiles | None = None) -> Crew:
    """The crew for a place; a local one takes over what its caller has open."""
    if is_ray(on):
        from prime_core.evaluation.ray_crew import RayCrew

        return RayCrew(on, workers)
    return LocalCrew(pool=pool, policy=policy)
