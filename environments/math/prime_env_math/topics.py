"""The names of fields and levels of procedural problems, for parameters and templates alike."""

from __future__ import annotations

from typing import Literal

Topic = Literal["algebra", "number_theory", "counting", "geometry", "calculus"]
Level = Literal[1, 2, 3]

TOPICS: tuple[Topic, ...] = ("algebra", "number_theory", "counting", "geometry", "calculus")
