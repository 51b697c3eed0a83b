"""`prime-core eval --endpoint` against a server of our own: costs, retries, resuming, secrets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from endpoint_server import EndpointServer, Reply, said
from serving_support import serving, tiny_model

from prime_core.api import EngineError, RunError
from prime_core.cli.evaluation import evaluate

pytestmark = pytest.mark.integration

KEY = "sk-of-a-test-0123456789"


def invoke(server: EndpointServer, out: Path, *arguments: str) -> Any:
    call = ["arithmetic", "--with", "digits=1", "--with", "kind=addition"]
    call += ["--endpoint", server.url, "--out", str(out), "--tasks", "12", *arguments]
    result = CliRunner().invoke(evaluate, call)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def solver(body: dict[str, Any]) -> Reply:
    """Adds, but is off by one for odd seeds."""
    words = body["messages"][-1]["content"].replace("=", " ").split("\n")[0].split("+")
    total = sum(int("".join(c for c in word if c.isdigit())) for word in words[:2])
    return said(str(total + body["seed"] % 2), prompt=10, completion=2)


def test_an_endpoint_is_measured_with_costs(tmp_path: Path) -> None:
    with EndpointServer(solver) as server:
        result = invoke(
            server, tmp_path, "--samples", "4", "--json",
            "--price-prompt", "1000", "--price-completion", "50000",
        )  # fmt: skip
    found = json.loads(result.stdout)
    assert found["settings"]["model"] == "toy"  # the only one that it lists
    assert (found["completions"], found["tasks"], len(server.bodies)) == (48, 12, 48)
    assert found["statuses"]["scored"] == 48
    assert 0 < found["pass"]["pass@1"]["mean"] < found["pass"]["pass@4"]["mean"] <= 1
    assert (found["prompt_tokens"], found["tokens"]) == (480, 96)
    assert found["cost"] == pytest.approx(480 * 0.001 + 96 * 0.05)
    assert "Nothing proves" in found["notes"][0]
    assert "Nothing proves" in (tmp_path / "report.html").read_text()
    assert len({body["seed"] for body in server.bodies}) == 48


def test_what_was_given_up_is_asked_for_alone(tmp_path: Path) -> None:
    seen: list[int] = []

    def shaky(body: dict[str, Any]) -> Reply:
        seen.append(body["seed"])
        return (400, {}, {"error": "no"}) if len(seen) in (3, 7) else solver(body)

    with EndpointServer(shaky) as server:
        first = invoke(server, tmp_path, "--model", "toy", "--concurrency", "1")
        assert first.exit_code == 1
        assert "2 given up: HTTP 400: no" in first.stdout
        assert "completions 10" in first.stdout
        lost = {seen[2], seen[6]}
        second = invoke(server, tmp_path, "--model", "toy", "--concurrency", "1", "--json")
    assert second.exit_code == 0
    assert json.loads(second.stdout)["completions"] == 12
    assert len(seen) == 14
    assert set(seen[12:]) == lost
    rows = pq.read_table(tmp_path / "samples.parquet").to_pylist()
    assert [row["index"] for row in rows] == sorted({row["index"] for row in rows})


def test_a_killed_evaluation_asks_no_answer_twice(tmp_path: Path) -> None:
    answered: list[int] = []
    killed: list[subprocess.Popen[str]] = []

    def answer(body: dict[str, Any]) -> Reply:
        if len(answered) == 5 and killed[0].poll() is None:
            killed[0].kill()  # the sixth answer reaches nobody
            killed[0].wait()
        answered.append(body["seed"])
        return solver(body)

    with EndpointServer(answer) as server:
        command = [
            *(sys.executable, "-m", "prime_core", "eval", "arithmetic", "--with", "digits=1"),
            *("--with", "kind=addition", "--endpoint", server.url, "--model", "toy"),
            *("--tasks", "12", "--out", str(tmp_path), "--concurrency", "1"),
        ]
        killed.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
        killed[0].communicate()
        assert killed[0].returncode == -9
        found = invoke(server, tmp_path, "--model", "toy", "--concurrency", "1", "--json")
    assert json.loads(found.stdout)["completions"] == 12
    assert len(answered) == 13
    assert len(set(answered)) == 12


def test_the_key_is_in_the_header_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_KEY", KEY)
    with EndpointServer(solver) as server:
        result = invoke(server, tmp_path, "--api-key-env", "SOME_KEY", "--tasks", "2")
        assert {headers["Authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
        with pytest.raises(RunError, match="ABSENT_KEY isn't set"):
            invoke(server, tmp_path, "--api-key-env", "ABSENT_KEY")
        server.answer = lambda body: (401, {}, {"error": {"message": f"bad key {KEY}"}})
        with pytest.raises(EngineError, match="HTTP 401") as caught:
            invoke(server, tmp_path / "other", "--api-key-env", "SOME_KEY")
    shown = f"{result.output}{caught.value}"
    shown += "".join(
        path.read_bytes().decode("latin-1") for path in tmp_path.rglob("*") if path.is_file()
    )
    assert KEY not in shown
    assert KEY in os.environ.values()


def test_it_must_be_clear_which_model_is_meant(tmp_path: Path) -> None:
    with EndpointServer(solver) as server, pytest.raises(RunError, match="base_url"):
        invoke(server, tmp_path, "--model", "toy", "--endpoint", "ftp://host")
    with pytest.raises(EngineError, match="which models it has"):
        invoke(server, tmp_path, "--retries", "0")  # it's gone


def test_request_fields_and_length_budgets_reach_the_endpoint(tmp_path: Path) -> None:
    with EndpointServer(solver) as server:
        result = invoke(
            server, tmp_path, "--request-field", 'reasoning_effort="high"', "--tasks", "2",
            "--length-budget", "2", "--json", "--temperature", "0",
        )  # fmt: skip
    body = server.bodies[0]
    assert body["reasoning_effort"] == "high"
    assert body["temperature"] == 0
    assert "Think for 2 tokens" in body["messages"][-1]["content"]
    fit = json.loads(result.stdout)["length_budget"]
    assert fit == {"target": 2, "mean_length": 2.0, "mean_error": 0.0, "within_tenth": 1.0}


def test_our_own_server_says_what_the_model_itself_says(tmp_path: Path) -> None:
    """Greedy, since an endpoint's seeds are only wishes; the same tasks, prompts and verdicts."""
    model = tiny_model(tmp_path / "tiny")
    call = ["arithmetic", "--with", "digits=1", "--with", "kind=addition", "--tasks", "6"]
    call += ["--max-tokens", "5", "--temperature", "0", "--model"]
    with serving(model) as url:
        there = CliRunner().invoke(
            evaluate, [*call, "tiny", "--endpoint", url, "--out", str(tmp_path / "there")]
        )
    assert there.exit_code == 0, there.output
    here = CliRunner().invoke(evaluate, [*call, str(model), "--out", str(tmp_path / "here")])
    assert here.exit_code == 0, here.output
    columns = ["task", "completion", "value", "status", "token_count", "prompt_tokens"]
    tables = [
        pq.read_table(tmp_path / place / "samples.parquet").select(columns)
        for place in ("here", "there")
    ]
    assert tables[0] == tables[1]
