"""Public data and cases: references pass, wrong copies of them don't, labelled cases come out
right."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prime_verifier_code import CodeParams, CodeVerifier
from prime_verifier_code.mutants import Mutant, mutants

from prime_core.api import Sandbox

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))
EVERY = 16  # the normal run takes each 16th problem
PLAIN_CPU_S = 10  # of all assertions together; a busy machine changes nothing
MUTANTS = ("off_by_one", "operator", "dropped_branch")


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.is_file():
        pytest.skip(f"the shared file {name} isn't here; set PRIME_SHARED to its folder")
    return path


@pytest.fixture(scope="module")
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


def cases() -> list[dict[str, Any]]:
    path = SHARED / "cases" / "code_cases.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Programs that use up a limit take seconds each; the slow run has them all.
SECONDS = ("cs-050", "cs-110", "cs-112", "cs-116", "cs-117", "cs-128", "cs-129")


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case["id"], marks=[pytest.mark.slow] if case["id"] in SECONDS else [])
        for case in cases()
    ],
)
def test_every_labelled_case_comes_out_right(verifier: CodeVerifier, case: dict[str, Any]) -> None:
    score = verifier.verify(*verifier.from_case(case))
    assert score.value == case["expected_reward"], (case["note"], score)


def humaneval() -> Iterator[tuple[dict[str, Any], str, str]]:
    """Verification data, right program, and the tests as one plain program."""
    with gzip.open(shared("data/humaneval/HumanEval.jsonl.gz"), "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            data = {name: row[name] for name in ("prompt", "entry_point", "test")}
            program = row["prompt"] + row["canonical_solution"]
            yield data, program, f"{row['test']}\ncheck({row['entry_point']})\n"


def mbpp() -> Iterator[tuple[dict[str, Any], str, str]]:
    for row in json.loads(shared("data/mbpp/sanitized_mbpp_prime.json").read_text("utf-8")):
        data = {name: row[name] for name in ("test_imports", "test_list")}
        yield data, row["code"], "\n".join([*row["test_imports"], *row["test_list"]])


SETS = {"humaneval": (humaneval, 164), "mbpp": (mbpp, 399)}


def judge(verifier: CodeVerifier, data: dict[str, Any], program: str) -> float | None:
    score = verifier.judge_data({**data, "time_limit_s": 3.0}, f"```python\n{program}\n```")
    assert score.status != "error", score
    return score.value


def passes_plainly(program: str, tests: str) -> bool:
    """The data set's own way: the assertions behind the program, in one process."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({PLAIN_CPU_S},) * 2)"
    command = [sys.executable, "-c", f"{limit}\n{program}\n\nimport sys\n{tests}\n"]
    return subprocess.run(command, capture_output=True).returncode == 0


def chosen_mutants(program: str, given: str) -> list[Mutant]:
    """One of each sort, in the part that isn't the problem's own text: HumanEval's tests use the
    helpers of its prompt, and take them from there."""
    first = given.count("\n")
    changed = [mutant for mutant in mutants(program) if mutant.line > first]
    found = {mutant.mutation: mutant for mutant in reversed(changed)}
    return [found[name] for name in MUTANTS if name in found]


@pytest.mark.parametrize("name", SETS)
def test_some_references_pass_and_their_wrong_copies_do_not(
    verifier: CodeVerifier, name: str
) -> None:
    check(verifier, [each for i, each in enumerate(SETS[name][0]()) if i % EVERY == 3])


@pytest.mark.slow
@pytest.mark.parametrize("name", SETS)
def test_all_references_pass_and_their_wrong_copies_do_not(
    verifier: CodeVerifier, name: str
) -> None:
    read, count = SETS[name]
    rows = list(read())
    assert len(rows) == count
    check(verifier, rows)


def check(verifier: CodeVerifier, rows: list[tuple[dict[str, Any], str, str]]) -> None:
    wrong = 0
    for data, program, tests in rows:
        assert judge(verifier, data, program) == 1.0, program
        for mutant in chosen_mutants(program, data.get("prompt", "")):
            if not passes_plainly(mutant.source, tests):
                assert judge(verifier, data, mutant.source) == 0.0, (mutant, tests)
                wrong += 1
    assert wrong > len(rows) / 2
