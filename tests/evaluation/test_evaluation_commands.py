"""`prime-core eval` and `profile` with a tiny model and the arithmetic environment."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from prime_core.api import PrimeError
from prime_core.cli.evaluation import evaluate
from prime_core.cli.profile import profile
from prime_core.cli.score import score
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


def test_a_model_is_measured_the_same_way_each_time(model: Path, tmp_path: Path) -> None:
    call = [
        *("arithmetic", "--model", str(model), *ADDITION),
        *("--tasks", "20", "--samples", "4", "--length-budget", "9", "--json"),
    ]
    outs = [tmp_path / "a", tmp_path / "b"]
    first, second = (json.loads(invoke(evaluate, *call, "--out", str(out)).stdout) for out in outs)
    assert first == second
    assert (first["tasks"], first["completions"], first["settings"]["unit"]) == (20, 80, 128)
    assert set(first["pass"]) == {"pass@1", "pass@2", "pass@4"}
    assert 0 <= first["mean"]["low"] <= first["mean"]["mean"] <= first["mean"]["high"] <= 1
    assert first["length_budget"]["target"] == 9
    assert "Think for 9 tokens" in first["settings"]["instruction"]["text"]
    for file in ("report.json", "report.html", "samples.parquet", "tasks.parquet"):
        assert (outs[0] / file).read_bytes() == (outs[1] / file).read_bytes(), file
    rows = pq.read_table(outs[0] / "samples.parquet").to_pylist()
    assert [row["sample"] for row in rows[:4]] == [0, 1, 2, 3]
    assert all(row["prompt_tokens"] > 0 and row["token_count"] > 0 for row in rows)


def test_what_was_sampled_can_be_scored_again(model: Path, tmp_path: Path) -> None:
    setting = [*("arithmetic", "--with", "digits=1", "--with", "kind=addition")]
    call = [*setting, "--model", str(model), "--max-tokens", "3", "--tasks", "30"]
    found = json.loads(invoke(evaluate, *call, "--out", str(tmp_path / "e"), "--json").stdout)
    samples = str(tmp_path / "e/samples.parquet")
    again = json.loads(
        invoke(
            score, *setting, "--completions", samples, "--out", str(tmp_path / "s"), "--json"
        ).stdout
    )
    for name in ("mean", "pass", "statuses", "histogram", "lengths"):
        assert again[name] == found[name]


def test_greedy_is_temperature_zero(model: Path, tmp_path: Path) -> None:
    call = [*("arithmetic", "--model", str(model), *ADDITION, "--tasks", "5", "--samples", "2")]
    invoke(evaluate, *call, "--temperature", "0", "--out", str(tmp_path))
    rows = pq.read_table(tmp_path / "samples.parquet").to_pylist()
    assert [row["completion"] for row in rows[::2]] == [row["completion"] for row in rows[1::2]]


def test_a_prompt_that_is_too_long_is_an_error_of_its_task(model: Path, tmp_path: Path) -> None:
    call = [*("arithmetic", "--model", str(model), *ADDITION, "--tasks", "5")]
    found = invoke(
        evaluate, *call, "--max-prompt-tokens", "2", "--out", str(tmp_path), "--json"
    ).stdout
    assert json.loads(found)["errors"][0]["count"] == 5
    assert "above [engine] max_prompt_tokens 2" in found


def test_what_to_evaluate_must_be_said(model: Path, tmp_path: Path) -> None:
    assert "either RUN or --model" in invoke(evaluate).output
    assert "need one environment" in invoke(evaluate, "--model", str(model)).output
    assert "isn't KEY=VALUE" in invoke(evaluate, "a", "--model", "m", "--with", "x").output
    assert "--out works with" in invoke(evaluate, str(tmp_path), "--out", "x").output
    assert "--temperature works" in invoke(evaluate, str(tmp_path), "--temperature", "0").output
    with pytest.raises(PrimeError, match=r"no run\.toml"):
        invoke(evaluate, str(tmp_path))


def test_a_profile_goes_on_where_it_stopped(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = [
        *("arithmetic", "--model", str(model), "-k", "8", *ADDITION),
        *("--tasks", "40", "--out", str(tmp_path), "--json"),
    ]
    played: list[int] = []
    original = Sampler.play
    most = 1

    async def interrupted(self: Sampler, pool: Any, items: Any, *rest: Any) -> Any:
        played.append(len(items))
        if len(played) > most:
            raise RuntimeError("killed")
        return await original(self, pool, items, *rest)

    monkeypatch.setattr(Sampler, "play", interrupted)
    with pytest.raises(RuntimeError, match="killed"):
        invoke(profile, *call)
    (partial,) = tmp_path.iterdir()
    assert partial.name.endswith(".partial.jsonl")
    assert len(partial.read_text().splitlines()) <= 2
    most = 9
    played.clear()
    done = len(partial.read_text().splitlines()) - 1
    printed = json.loads(invoke(profile, *call).stdout)
    assert sum(played) == 320 - 128 * done
    continued = read_profile(tmp_path, "arithmetic", model_digest(model))
    assert len(continued) == printed["tasks"] == sum(printed["passes"]) == 40
    assert all(one.attempts == 8 for one in continued.values())
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
