"""Everything a node could otherwise choose, as pure functions of what nobody can choose.

Workers, validators and engines call these and get equal answers on every machine; nothing here uses
global random state or `hash()`. docs/reference/seeds.md is the specification, tests/vectors/ its
golden vectors.
"""

from prime_core.assignment.groups import (
    PURPOSES,
    AssignmentKey,
    EnvironmentShare,
    GroupAssignment,
    assign,
    beacon,
    group_id,
    group_rng,
    parse_group_id,
)
from prime_core.assignment.gumbel import (
    GUMBEL_SPAN,
    gumbel,
    gumbel_argmax,
    gumbel_at,
    gumbel_from_words,
    gumbel_words,
)
from prime_core.assignment.philox import SeededRng

__all__ = [
    "GUMBEL_SPAN",
    "PURPOSES",
    "AssignmentKey",
    "EnvironmentShare",
    "GroupAssignment",
    "SeededRng",
    "assign",
    "beacon",
    "group_id",
    "group_rng",
    "gumbel",
    "gumbel_argmax",
    "gumbel_at",
    "gumbel_from_words",
    "gumbel_words",
    "parse_group_id",
]
