"""The sandbox `landlock`: a weaker jail for hosts that refuse namespaces, only where it's named.

Found through the entry point `sandbox.landlock`; its level is `process`, so that an environment or
a task that asks for namespaces refuses it.
"""

from __future__ import annotations

from prime_core.api import Context, SandboxSpec, hookimpl
from prime_core.api.jails import JailedSandbox, PoolParams
from prime_sandbox_landlock.launcher import LandlockLauncher

__all__ = ["LandlockLauncher", "LandlockParams", "make", "prime_sandboxes"]


class LandlockParams(PoolParams):
    """What the sandboxes have in common; this one adds nothing."""


def make(params: LandlockParams, context: Context) -> JailedSandbox:
    """The sandbox; nothing is started before it's asked for something."""
    return JailedSandbox(LandlockLauncher(params.outer_user), params, context)


@hookimpl
def prime_sandboxes() -> list[SandboxSpec]:
    """Register it."""
    return [
        SandboxSpec(
            name="landlock",
            params=LandlockParams,
            factory=make,
            summary="Without namespaces: Landlock, seccomp and rlimits; weaker, never a default",
        )
    ]
