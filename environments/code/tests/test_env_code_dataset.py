"""Data sets: public schemas by URL, prompts, sanity."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from prime_env_code import CodeEnvironment, CodeEnvParams, make
from prime_env_code.sanity import careless_programs
from prime_verifier_code import CodeParams, CodeVerifier, read_problem

from prime_core.api import Completion, DatasetError, Sandbox
from prime_core.testing.context import OfflineContext
from prime_core.testing.rng import SplitMixRng

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))
DOUBLE = {
    "problem_id": "double",
    "prompt": "Double it.",
    "gold_standard_solution": "print(2 * int(input()))",
    "verification_info": {
        "type": "stdin",
        "tests": [{"input": "1", "output": "2"}, {"input": "4", "output": "8"}],
    },
}


def row(name: str, gold: str | None = None, **verification: Any) -> dict[str, Any]:
    info = {**DOUBLE["verification_info"], **verification}  # type: ignore[dict-item]
    return {
        **DOUBLE,
        "problem_id": name,
        "verification_info": info,
        "gold_standard_solution": gold or DOUBLE["gold_standard_solution"],
    }


def environment(
    tmp_path: Path,
    rows: list[dict[str, Any]],
    sandbox: Sandbox | None = None,
    dataset: dict[str, Any] | None = None,
    **params: Any,
) -> CodeEnvironment:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))
    given = {"dataset": {"url": str(path), **(dataset or {})}, **params}
    return make(CodeEnvParams.model_validate(given), OfflineContext(tmp_path, sandbox))


def test_own_schema(tmp_path: Path) -> None:
    made = environment(tmp_path, [DOUBLE], prompt_template="{problem} Go.")
    (task,) = made.tasks()
    assert task.prompt[0].content.startswith("Double it.\n\nRead from standard input")
    assert made.gold(task) == "```python\nprint(2 * int(input()))\n```\n"
    assert made.notes == ()
    assert made.verifier == "code"


def test_public_schemas_load_through_their_columns(tmp_path: Path) -> None:
    apps = {
        "question": "Add.",
        "input_output": json.dumps({"inputs": ["1 2", "2 3"], "outputs": ["3", "5"]}),
        "solutions": json.dumps(["print(sum(map(int, input().split())))", "other"]),
    }
    columns = {"gold_standard_solution": "solutions"}
    made = environment(tmp_path, [apps], dataset={"schema": "apps", "columns": columns})
    assert made.tasks()[0].gold == "print(sum(map(int, input().split())))"
    test = {"input": "[1]", "output": "2", "testtype": "functional"}
    other = {"input": "[4]", "output": "5", "testtype": "functional"}
    bench = {
        "question_id": "q1",
        "question_content": "Increase.",
        "starter_code": "class Solution:\n    def up(self, x):\n        ",
        "public_test_cases": json.dumps([test]),
        "private_test_cases": json.dumps([other]),
        "metadata": json.dumps({"func_name": "up"}),
    }
    made = environment(tmp_path, [bench], dataset={"schema": "livecodebench"})
    (task,) = made.tasks()
    assert "def up(self, x):" in task.prompt[0].content
    assert task.verification["fn_name"] == "up"
    with pytest.raises(DatasetError, match="no reference solution"):
        made.gold(task)
    call = {"type": "function_call", "fn_name": "f", "input": [3], "output": 9}
    genesys = {
        "problem_id": "g",
        "prompt": "Square.",
        "verification_info": repr(
            {"language": "python", "test_cases": [call, {**call, "input": [4], "output": 16}]}
        ),
    }
    made = environment(tmp_path, [genesys], dataset={"schema": "genesys"})
    assert "function `f`" in made.tasks()[0].prompt[0].content


BAD = {
    "contradiction": row("contradiction", tests=[
        {"input": "1", "output": "2"}, {"input": "1", "output": "3"}]),
    "one output": row("one output", tests=[
        {"input": "1", "output": "2"}, {"input": "2", "output": "2"}]),
    "no tests": row("no tests", tests=[]),
}  # fmt: skip


def test_problems_that_are_not_fit_are_left_out_and_named(tmp_path: Path) -> None:
    made = environment(tmp_path, [DOUBLE, *BAD.values()])
    assert [task.id for task in made.tasks()] == ["double"]
    assert len(made.notes) == 3
    notes = "\n".join(made.notes)
    assert "contradiction: contradictory tests" in notes
    assert "one output: 2 tests, 1 distinct output" in notes
    assert "no tests: schema own" in notes
    with pytest.raises(DatasetError, match="can't be judged"):
        environment(tmp_path, [DOUBLE, *BAD.values()], on_bad_problem="refuse")
    with pytest.raises(DatasetError, match="aren't fit"):
        environment(tmp_path, [DOUBLE, BAD["one output"]], on_bad_problem="refuse")
    kept = environment(tmp_path, [DOUBLE, BAD["one output"]], sanity="off")
    assert len(kept.tasks()) == 2
    with pytest.raises(DatasetError, match="no problem"):
        environment(tmp_path, [BAD["one output"]])


def test_full_sanity_runs_reference_and_careless_programs(tmp_path: Path, jails: Sandbox) -> None:
    rows = [
        DOUBLE,
        row("wrong reference", "print(3)"),
        row("slow reference", "sum(range(3 * 10**7))\nprint(2 * int(input()))", time_limit_s=1.0),
        row("echo", "print(input())", tests=[{"input": t, "output": t} for t in ("a", "b")]),
        row(
            "constant",
            text={"float_tolerance": 0.5},
            tests=[{"input": "1", "output": "20.0"}, {"input": "1.1", "output": "22.0"}],
            gold="print(20 * float(input()))",
        ),
    ]
    made = environment(tmp_path, rows, jails, sanity="full")
    assert [task.id for task in made.tasks()] == ["double"]
    notes = dict(note.split(": ", 1) for note in made.notes)
    assert notes["wrong reference"] == "the reference doesn't pass: wrong_answer"
    assert "of CPU, the limit is 1 s" in notes["slow reference"]
    assert notes["echo"] == "the echo program passes"
    assert notes["constant"] == "the constant program passes"
    # The second time the findings are remembered: no sandbox is needed for them but its name.
    assert environment(tmp_path, rows, jails, sanity="full").notes == made.notes


def test_wrong_completions_are_wrong(tmp_path: Path, jails: Sandbox) -> None:
    made = environment(tmp_path, [DOUBLE])
    verifier = CodeVerifier(CodeParams(), jails)
    task = made.tasks()[0]
    assert verifier.verify(task, Completion(made.gold(task))).value == 1.0
    for seed in range(12):
        score = verifier.verify(task, Completion(made.wrong(task, SplitMixRng(seed))))
        assert score.value == 0.0


def shared(name: str) -> str:
    path = SHARED / "data" / name
    if not path.is_file():
        pytest.skip(f"the shared data set {name} isn't here; set PRIME_SHARED to its folder")
    return str(path)


SETS = {
    "humaneval": ("humaneval/HumanEval.jsonl.gz", "humaneval", 164),
    "mbpp": ("mbpp/sanitized_mbpp_prime.json", "mbpp", 399),
    "mbpp_full": ("mbpp/mbpp.jsonl", "mbpp_full", 974),
}


@pytest.mark.parametrize("name", SETS)
def test_shared_data_sets_load(name: str, tmp_path: Path) -> None:
    file, schema, count = SETS[name]
    params = {"dataset": {"url": shared(file), "schema": schema}, "sanity": "off"}
    made = make(CodeEnvParams.model_validate(params), OfflineContext(tmp_path))
    assert len(made.tasks()) + len(made.notes) == count
    assert len(made.notes) <= 2, made.notes
    for task in made.tasks()[::50]:
        problem = read_problem(task.verification)
        assert problem.fn_name
        assert problem.fn_name in task.prompt[-1].content
        assert "empty" in careless_programs(problem)


def test_static_sanity_of_humaneval_and_mbpp_names_few(tmp_path: Path) -> None:
    for name in ("humaneval", "mbpp"):
        file, schema, count = SETS[name]
        params = {"dataset": {"url": shared(file), "schema": schema}}
        made = make(CodeEnvParams.model_validate(params), OfflineContext(tmp_path))
        assert len(made.tasks()) >= 0.97 * count, made.notes


def test_findings_are_kept_for_one_verifier_and_only_where_all_was_decided(
    tmp_path: Path, jails: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [row("fine"), row("broken", checker={"source": "def check(a, b, c): return None"})]
    kept = OfflineContext(tmp_path).cache_dir / "code-sanity"
    (note,) = environment(tmp_path, rows, jails, sanity="full").notes
    assert note.startswith("broken: it can't be judged")
    assert not kept.exists()
    environment(tmp_path, rows[:1], jails, sanity="full")
    environment(tmp_path, rows[:1], jails, sanity="full")
    assert len(list(kept.iterdir())) == 1
    monkeypatch.setattr("prime_env_code.sanity.rules_digest", lambda: "another verifier")
    environment(tmp_path, rows[:1], jails, sanity="full")
    assert len(list(kept.iterdir())) == 2
