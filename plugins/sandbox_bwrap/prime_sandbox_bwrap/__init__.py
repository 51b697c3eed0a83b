"""The sandbox `bwrap`: jails in namespaces of their own, made by bubblewrap.

Found through the entry point `sandbox.bwrap`; made in environment hosts, for verifiers that judge
programs.
"""

from __future__ import annotations

from prime_core.api import Context, SandboxSpec, hookimpl
from prime_core.api.jails import JailedSandbox, PoolParams
from prime_sandbox_bwrap.launcher import BwrapLauncher

__all__ = ["BwrapLauncher", "BwrapParams", "make", "prime_sandboxes"]


class BwrapParams(PoolParams):
    """What the sandboxes have in common; this one adds nothing."""


def make(params: BwrapParams, context: Context) -> JailedSandbox:
    """The sandbox; nothing is started before it's asked for something."""
    return JailedSandbox(BwrapLauncher(params.outer_user), params, context)


@hookimpl
def prime_sandboxes() -> list[SandboxSpec]:
    """Register it."""
    return [
        SandboxSpec(
            name="bwrap",
            params=BwrapParams,
            factory=make,
            summary="Programs in namespaces, with seccomp and cgroups, launched by bubblewrap",
        )
    ]
