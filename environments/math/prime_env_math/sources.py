r"""The layouts of public data sets: which column is what, which rows can't be used, and why.

Read by `loading.py`; each layout is the columns of the named data set as its authors publish it,
and any column can be named otherwise in the run config.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from prime_core.api import Task
from prime_core.api.datasets import Column

SourceName = Literal[
    "gsm8k", "math", "numina_math_1_5", "deepscaler", "math_500", "aime", "intellect_2_rl"
]


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a data set become tasks.

    Attributes:
        columns: field of a task to column, as `DatasetSource.columns`.
        metadata: columns that are kept unless the config names others.
        gold: column: as mapped; boxed: the last box of what is mapped; verification: the
            `ground_truth` of the verification data.
        task_types: only rows of these types; () for all.
        unusable: the reason why a task can't be judged by its answer; "" where it can.
        licence: as published.
    """

    columns: Mapping[str, str | Column]
    metadata: tuple[str, ...] = ()
    gold: Literal["column", "boxed", "verification"] = "column"
    task_types: tuple[str, ...] = ()
    unusable: Callable[[Task], str] = field(default=lambda task: "")
    licence: str = "unknown"


def _numina_unusable(task: Task) -> str:
    if task.metadata.get("problem_is_valid", "Yes") != "Yes":
        return "its authors call the problem invalid"
    answer = (task.gold or "").strip().casefold()
    if answer == "proof":
        return "it asks for a proof"
    return "it has no answer" if answer in ("", "notfound", "not found") else ""


LAYOUTS: dict[str, Layout] = {  # one for each SourceName
    # openai/gsm8k: question; answer ends with #### N
    "gsm8k": Layout(
        {
            "prompt": "question",
            "gold_standard_solution": Column(column="answer", after="####"),
        },
        licence="MIT",
    ),
    # hendrycks/competition_math: problem, level, type, solution with the answer in a box
    "math": Layout(
        {"prompt": "problem", "gold_standard_solution": "solution"},
        metadata=("level", "type"),
        gold="boxed",
        licence="MIT",
    ),
    # AI-MO/NuminaMath-1.5: problem, solution, answer, problem_type, question_type, source,
    # problem_is_valid, solution_is_valid, synthetic
    "numina_math_1_5": Layout(
        {
            "prompt": "problem",
            "gold_standard_solution": "answer",
            "task_type": "question_type",
            "source": "source",
        },
        metadata=("problem_type", "problem_is_valid", "solution_is_valid", "synthetic"),
        task_types=("math-word-problem", "MCQ"),
        unusable=_numina_unusable,
        licence="Apache-2.0",
    ),
    # agentica-org/DeepScaleR-Preview-Dataset: problem, answer, solution
    "deepscaler": Layout({"prompt": "problem", "gold_standard_solution": "answer"}, licence="MIT"),
    # HuggingFaceH4/MATH-500: problem, solution, answer, subject, level, unique_id
    "math_500": Layout(
        {"problem_id": "unique_id", "prompt": "problem", "gold_standard_solution": "answer"},
        metadata=("subject", "level"),
        licence="MIT",
    ),
    # HuggingFaceH4/aime_2024, AI-MO/aimo-validation-aime: id, problem, solution, answer, url
    "aime": Layout(
        {"problem_id": "id", "prompt": "problem", "gold_standard_solution": "answer"},
        metadata=("url",),
        licence="MAA, for evaluation only",
    ),
    # PrimeIntellect/INTELLECT-2-RL-Dataset: problem_id, task_type, prompt, verification_info (JSON
    # with ground_truth), and the share of solutions by the 7B distillation that were right
    "intellect_2_rl": Layout(
        {},
        metadata=("solve_rate_qwen_r1_distill_7b",),
        gold="verification",
        task_types=("verifiable_math",),
    ),
}
CUSTOM = Layout({})
