"""`prime-core eval` and `profile` with a tiny model and the arithmetic environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prime_core.api import PrimeError
from prime_core.cli.evaluation import evaluate, profile
from prime_core.engines.model_files import model_digest
from prime_core.engines.tiny_model import PLAIN_TEMPLATE, build_tiny_model
from prime_core.evaluation.profiles import read_profile
from prime_core.evaluation.sampling import Sampler

ADDITION = ["--with", "digits=1", "--with", "kind=addition", "--max-tokens", "3"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("eval") / "model"
    return build_tiny_model(
        directory, symbols="0123456789+= ", layers=1, chat_template=PLAIN_TEMPLATE
    )


def invoke(command: Any, *arguments: str) -> Any:
    result = CliRunner().invoke(command, arguments)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_a_model_is_evaluated_the_same_way_each_time(model: Path) -> None:
    call = [
        *("--model", str(model), "--env", "arithmetic", *ADDITION),
        *("--tasks", "20", "--samples", "2", "--json"),
    ]
    first, second = (json.loads(invoke(evaluate, *call).stdout) for _ in range(2))
    assert first == second
    sampled = first["environments"]["arithmetic"]["sampled"]
    assert (sampled["tasks"], sampled["completions"], sampled["unscored"]) == (20, 40, 0)
    assert first["tasks"] == 20
    assert 0 <= sampled["low"] <= sampled["mean"] <= sampled["high"] <= 1
    assert first["environments"]["arithmetic"]["greedy"]["completions"] == 20


def test_what_to_evaluate_must_be_said(model: Path, tmp_path: Path) -> None:
    assert "either RUN or --model" in invoke(evaluate).output
    assert "needs --env" in invoke(evaluate, "--model", str(model)).output
    assert "isn't KEY=VALUE" in invoke(evaluate, "--env", "a", "--model", "m", "--with", "x").output
    with pytest.raises(PrimeError, match=r"no run\.toml"):
        invoke(evaluate, str(tmp_path))


def test_a_profile_goes_on_where_it_stopped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = [
        *("arithmetic", "--model", str(model), "-k", "4", *ADDITION),
        *("--tasks", "40", "--out", str(tmp_path), "--json"),
    ]
    asked: list[int] = []
    original = Sampler.sample

    async def interrupted(self: Sampler, pool: Any, indices: Any, sampling: Any) -> Any:
        async for result in original(self, pool, indices, sampling):
            asked.append(len(indices))
            if stop_after is not None and len(asked) > stop_after:
                raise RuntimeError("killed")
            yield result

    monkeypatch.setattr(Sampler, "sample", interrupted)
    stop_after: int | None = 10
    with pytest.raises(RuntimeError, match="killed"):
        invoke(profile, *call)
    assert [file.suffix for file in tmp_path.iterdir()] == [".jsonl"]
    stop_after = None
    asked.clear()
    printed = json.loads(invoke(profile, *call).stdout)
    assert asked == [30] * 30
    continued = read_profile(tmp_path, "arithmetic", model_digest(model))
    assert len(continued) == printed["tasks"] == sum(printed["passes"]) == 40
    assert all(one.attempts == 4 for one in continued.values())
    # Without an interruption the numbers are the same.
    invoke(profile, *call)
    assert read_profile(tmp_path, "arithmetic", model_digest(model)) == continued
    assert [file.suffix for file in tmp_path.iterdir()] == [".parquet"]


def test_a_profile_is_printed_with_the_bands(model: Path, tmp_path: Path) -> None:
    result = invoke(
        profile,
        *("arithmetic", "--model", str(model), "-k", "2", *ADDITION),
        *("--tasks", "8", "--label", "sums", "--out", str(tmp_path)),
    )
    assert "pass_rate_band 1/8-4/8 keeps" in result.stdout
    assert "of 8 tasks" in result.stdout
    assert (tmp_path / f"sums-{model_digest(model)[:16]}.parquet").is_file()
