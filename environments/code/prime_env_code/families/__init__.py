"""The families of procedural problems, by name.

Read by the task list; a new family is added at the end of its difficulty, so that the order of
the others' tasks stays.
"""

from prime_env_code.families.easy import EASY
from prime_env_code.families.family import Difficulty, Draws, Family, fill
from prime_env_code.families.hard import HARD
from prime_env_code.families.medium import MEDIUM

FAMILIES: dict[str, Family] = {family.name: family for family in (*EASY, *MEDIUM, *HARD)}

__all__ = ["FAMILIES", "Difficulty", "Draws", "Family", "fill"]
