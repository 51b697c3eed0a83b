"""What sandbox plugins are built from: a staged root, a zygote in it, jails over it, a warm pool.

A plugin writes a `Launcher` (how a process gets into namespaces, or doesn't) and hands it to
`JailedSandbox`; everything else is the same for all of them. Imports the standard library only.
"""

from prime_core.api.jails.cgroups import CgroupPlace, find_place
from prime_core.api.jails.launching import Launched, Launcher, Started
from prime_core.api.jails.pool import JailedSandbox, PoolParams
from prime_core.api.jails.seccomp import bpf_program, kafel_policy
from prime_core.api.jails.staging import StagedRoot, stage

__all__ = [
    "CgroupPlace",
    "JailedSandbox",
    "Launched",
    "Launcher",
    "PoolParams",
    "StagedRoot",
    "Started",
    "bpf_program",
    "find_place",
    "kafel_policy",
    "stage",
]
