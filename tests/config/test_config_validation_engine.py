"""The engine that validators recompute with: the run's own, unless they have another."""

from __future__ import annotations

from typing import Any

from prime_core.config.sections import RunConfig
from prime_core.hub import selections

RUN: dict[str, Any] = {
    "model": {"path": "m"},
    "environments": [{"use": "arithmetic"}],
    "engine": {"use": "vllm", "temperature": 0.6, "max_tokens": 48, "with": {"batch_size": 8}},
}


def test_validators_recompute_with_the_runs_engine_unless_they_have_their_own() -> None:
    plain = RunConfig.model_validate(RUN)
    assert plain.recomputing_engine == plain.engine
    own = {"engine": {"use": "transformers", "with": {"batch_size": 4}}}
    config = RunConfig.model_validate({**RUN, "validation": own})
    judging = config.recomputing_engine
    assert (judging.use, judging.params) == ("transformers", {"batch_size": 4})
    assert (judging.temperature, judging.max_tokens) == (0.6, 48)
    assert config.engine == plain.engine


def test_it_is_looked_up_with_the_other_plugins() -> None:
    config = RunConfig.model_validate({**RUN, "validation": {"engine": {"use": "other"}}})
    found = {each.where: each.choice.use for each in selections(config)}
    assert found["engine"] == "vllm"
    assert found["validation.engine"] == "other"
