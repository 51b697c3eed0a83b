"""What plugin authors test with: contract classes, an isolated hub, in-memory plugins, an Rng.

The fixtures come with the pytest plugin; contract classes stand in `prime_core.testing.contract`.
This module stays empty, so that starting pytest costs nothing.
"""
