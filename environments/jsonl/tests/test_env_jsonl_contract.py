"""The environment keeps the contract of its kind, over rows of its own and over GSM8K."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prime_env_jsonl import JsonlParams, make

from prime_core.api import Completion, Environment, Score, Task, Verifier
from prime_core.testing.context import OfflineContext
from prime_core.testing.contract import EnvironmentContract

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))


class AfterMarker:
    """A stand-in for the verifier plugin, which is another distribution's."""

    def verify(self, task: Task, completion: Completion) -> Score:
        _, found, answer = completion.text.rpartition("####")
        if not found or not answer.strip():
            return Score(0.0, "invalid_output")
        return Score(1.0 if answer.strip() == task.gold else 0.0)


class JsonlContract(EnvironmentContract):
    @pytest.fixture
    def verifier(self) -> Verifier:
        return AfterMarker()


class TestOwnRows(JsonlContract):
    @pytest.fixture
    def make_environment(self, tmp_path: Path) -> Callable[[], Environment]:
        rows: list[dict[str, Any]] = [
            {
                "problem_id": f"p{i}",
                "prompt": f"What is {i} + {i}?",
                "gold_standard_solution": 2 * i,
                "verification_info": "{'ground_truth': None}",
                "metadata": {"i": i},
            }
            for i in range(40)
        ]
        rows.append({"prompt": "The sky is", "gold_standard_solution": "blue"})
        path = tmp_path / "rows.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        params = JsonlParams(
            url=str(path),
            system_prompt="Be brief.",
            prompt_suffix="Answer after ####.",
            licence="CC0-1.0",
        )
        return lambda: make(params, OfflineContext(tmp_path))


class TestGsm8k(JsonlContract):
    @pytest.fixture
    def make_environment(self, tmp_path: Path) -> Callable[[], Environment]:
        path = SHARED / "data" / "gsm8k" / "test.jsonl"
        if not path.is_file():
            pytest.skip("the shared data set gsm8k isn't here; set PRIME_SHARED to its folder")
        params = JsonlParams.model_validate(
            {
                "url": str(path),
                "columns": {
                    "prompt": "question",
                    "gold_standard_solution": {"column": "answer", "after": "####"},
                },
                "limit": 200,
                "licence": "MIT",
            }
        )
        return lambda: make(params, OfflineContext(tmp_path))
