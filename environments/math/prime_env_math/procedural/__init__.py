"""Procedural problems with exact answers: five topics, three levels, no network.

`ProceduralTasks` is the list that the environment gives; the topics' modules hold the templates.
"""

from prime_env_math.procedural.problem import Problem, Template
from prime_env_math.procedural.tasks import TEMPLATES, ProceduralTasks, problem_of

__all__ = ["TEMPLATES", "Problem", "ProceduralTasks", "Template", "problem_of"]
