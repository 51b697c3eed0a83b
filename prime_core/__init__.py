"""prime-core: asynchronous reinforcement learning on rollouts from machines nobody trusts.

This module stays empty but for the version, so that `import prime_core` costs nothing.
"""

__version__ = "0.1.0"
