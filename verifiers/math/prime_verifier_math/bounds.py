"""What a verdict may cost: sizes that are refused before they are built, and a step counter.

Every module that parses or computes spends from one `Steps` a comparison; the counter is
deterministic, so a verdict never depends on how busy the machine is.
"""

from __future__ import annotations

MAX_RAW_CHARS = 20_000  # an answer as extracted; longer ones are no answers
MAX_TOKENS = 1_500  # after redundant brackets are gone
MAX_DEPTH = 60  # nested brackets, groups, functions
MAX_DIGITS = 1_000  # of one literal
MAX_ITEMS = 200  # of one list, tuple, set; entries of one matrix row or column
MAX_BITS = 20_000  # of one exact power, factorial or binomial
MAX_EXPONENT = 5_000  # of a decimal literal such as 1e23
MAX_STEPS = 60_000  # term operations of one comparison, a few microseconds each
EXACT_STEPS = 15_000  # of these for one exact reading; numeric points come after


class Unreadable(Exception):
    """The text doesn't follow the grammar; it may still be a text answer."""


class OverBound(Exception):
    """The text asks for more than a verdict may cost."""


class Undefined(Exception):
    """The expression has no value: division by zero, 0^0 forms, a pole."""


class Steps:
    """A budget of elementary operations."""

    __slots__ = ("left",)

    def __init__(self, limit: int = MAX_STEPS) -> None:
        self.left = limit

    def spend(self, count: int = 1) -> None:
        """Take `count` steps; raises `OverBound` when the budget is used up."""
        self.left -= count
        if self.left < 0:
            raise OverBound("too many steps")
