"""How much a check looks at, and for how long.

The command line sets it, the lab and the rules read it, and results are cached by it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of a check.

    Attributes:
        tasks: tasks that policies are scored on, at most.
        sample: tasks whose gold, wrong and written completions are scored, at most.
        listed: tasks that are listed and hashed, at most.
        wrong_seeds: wrong completions that are asked for a task.
        item_s: seconds that one completion may take.
        start_s: seconds until an environment is open.
        memory_mb: address space of a host, MiB.
        total_s: seconds of wall time after which no further rule runs anything.
    """

    tasks: int = 200
    sample: int = 64
    listed: int = 20_000
    wrong_seeds: int = 4
    item_s: float = 10.0
    start_s: float = 90.0
    memory_mb: int = 2048
    total_s: float = 3600.0
