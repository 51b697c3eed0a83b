"""The sandbox `nsjail`: jails in namespaces of their own, made by nsjail.

Found through the entry point `sandbox.nsjail`; made in environment hosts, for verifiers that judge
programs.
"""

from __future__ import annotations

from prime_core.api import Context, SandboxSpec, hookimpl
from prime_core.api.jails import JailedSandbox, PoolParams
from prime_sandbox_nsjail.launcher import NsjailLauncher

__all__ = ["NsjailLauncher", "NsjailParams", "make", "prime_sandboxes"]


class NsjailParams(PoolParams):
    """What the sandboxes have in common; this one adds nothing."""


def make(params: NsjailParams, context: Context) -> JailedSandbox:
    """The sandbox; nothing is started before it's asked for something."""
    return JailedSandbox(NsjailLauncher(params.outer_user), params, context)


@hookimpl
def prime_sandboxes() -> list[SandboxSpec]:
    """Register it."""
    return [
        SandboxSpec(
            name="nsjail",
            params=NsjailParams,
            factory=make,
            summary="Programs in namespaces, with seccomp and cgroups, launched by nsjail",
        )
    ]
