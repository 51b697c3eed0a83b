"""Sanity checks of submitted rollouts, cheapest first: eleven plugins of kind `sanity_check`.

Found through the entry points `sanity_check.<name>`; run in the validator's process. Nothing heavy
is imported before a check is asked.
"""

from prime_core.api import SanityCheckSpec, hookimpl
from prime_sanity_checks import (
    assignment,
    bounds,
    identity,
    logprobs,
    policy_digest,
    replay,
    rewards,
    sampling,
    schema,
    termination,
    toploc,
)

__all__ = ["prime_sanity_checks"]

_CHEAPEST_FIRST = (
    identity,
    schema,
    policy_digest,
    assignment,
    bounds,
    termination,
    rewards,
    logprobs,
    sampling,
    replay,
    toploc,
)


@hookimpl
def prime_sanity_checks() -> list[SanityCheckSpec]:
    """Register all of them."""
    return [check.SPEC for check in _CHEAPEST_FIRST]
