"""The contributor's road: new distributions, publishing them to a static index, installing them.

Called by `prime_core.cli`; a run asks `trust` whether its plugins are published as it demands.
Invariant: what is installed or trusted was verified against a signed record of its bytes.
"""
