"""Environment hosts: environments, verifiers and rewards in processes that can be killed.

`HostPool` (in `prime_core.hosting.pool`) is what the engine uses; this module stays empty, because
the host's entry point is imported before its process splits and has to stay small.
"""
