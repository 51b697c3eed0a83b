"""`prime-core verify` through a real host."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from prime_core.api import DatasetError, HostError, PluginError
from prime_core.cli.verify import verify

pytestmark = pytest.mark.integration

PLUGIN = Path(__file__).parents[1] / "hosting" / "judge_plugin.txt"
ROWS: list[dict[str, Any]] = [
    {"id": "a", "gold": "4", "said": "4", "kind": "whole", "expected": True},
    {"id": "b", "gold": "4", "said": "5", "kind": "whole", "expected": False},
    {"id": "c", "gold": "x", "said": "4", "kind": "odd", "expected": 1},
    {"id": "d", "gold": "4", "said": "exit", "kind": "odd", "expected": False},
    {"id": "e", "gold": "4", "kind": "odd"},
    {"gold": "x", "said": "x", "kind": "odd", "expected": False},
]


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A verifier with every optional member, on the hosts' path; the file of its cases."""
    info = tmp_path / "prime_verifier_judge-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: prime-verifier-judge\nVersion: 0.1\n"
        "Requires-Dist: prime-core>=0.1,<1\n"
    )
    kinds = ("verifier.judge", "verifier.plain", "environment.golds")
    lines = [f"{kind} = prime_verifier_judge" for kind in kinds]
    (info / "entry_points.txt").write_text("\n".join(["[prime_core]", *lines]))
    (tmp_path / "prime_verifier_judge.py").write_text(PLUGIN.read_text())
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    cases = tmp_path / "cases.jsonl"
    cases.write_text("\n\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS))
    return cases


def call(*arguments: str, text: str = "") -> tuple[int, str]:
    found = CliRunner().invoke(verify, list(arguments), input=text)
    if found.exception is not None and not isinstance(found.exception, SystemExit):
        raise found.exception
    return found.exit_code, found.output


@pytest.mark.usefixtures("judge")
def test_one_completion_is_judged_and_explained() -> None:
    code, output = call("judge", "--gold", "4", "--completion", "-", text="4")
    assert code == 0
    first, *rest = output.splitlines()
    assert first.startswith("1 (scored, ")
    assert rest == ['  extracted: "4"', '  rule: "same text"']
    code, output = call("judge", "--gold", "4", "--completion", "-", "--json", text="5")
    found = json.loads(output)
    assert (code, found["value"], found["rule"]) == (0, 0.0, "same text")
    assert found["explanation"] == {"extracted": "5", "rule": "same text"}


@pytest.mark.usefixtures("judge")
def test_a_verifier_that_fails_exits_1() -> None:
    code, output = call("judge", "--gold", "4", "--completion", "-", text="exit")
    assert code == 1
    assert output.startswith("no value (error)")
    assert "exited with code 7" in output


def test_evidence_stands_where_a_verifier_explains_nothing() -> None:
    code, output = call("exact", "--gold", "42", "--completion", "-", text="#### 42")
    assert code == 0
    assert '  answer: "42"' in output
    code, output = call(
        "exact", "--with", "mode=text", "--gold", "a", "--completion", "-", text="b"
    )
    assert (code, output[:2]) == (0, "0 ")
    with pytest.raises(HostError, match="mood"):
        call("exact", "--with", "mood=text", "--gold", "a", "--completion", "-", text="b")


def test_rows_are_counted_by_kind(judge: Path) -> None:
    code, output = call("judge", "--cases", str(judge))
    assert code == 0
    lines = [line.split() for line in output.splitlines()]
    counts = {line[0]: [int(word) for word in line[1:6]] for line in lines[1:4]}
    # count, right, accepted wrong, rejected right, no value
    assert counts == {"whole": [2, 2, 0, 0, 0], "odd": [4, 0, 1, 1, 2], "all": [6, 2, 1, 1, 2]}
    assert "d: the host exited with code 7" in output
    assert "e: ValueError: the row has no said" in output


def test_json_says_one_line_a_row_in_order(judge: Path) -> None:
    code, output = call("judge", "--cases", str(judge), "--json", "--hosts", "2")
    assert code == 0
    lines = [json.loads(line) for line in output.splitlines()]
    assert [line["id"] for line in lines] == ["a", "b", "c", "d", "e", "line 11"]
    assert [line["value"] for line in lines] == [1.0, 0.0, 0.0, None, None, 1.0]
    assert all({"id", "value", "status", "cpu_seconds", "rule"} <= line.keys() for line in lines)
    assert lines[0]["cpu_seconds"] >= 0
    assert lines[3]["cpu_seconds"] is None


def test_second_opinions_list_disagreements(judge: Path) -> None:
    code, output = call("judge", "--cases", str(judge), "--second-opinion")
    assert code == 0
    assert "second opinion: 5 asked, 2 disagree" in output
    assert "c: 0 here (same text), 1 there" in output
    assert "line 11: 1 here (same text), 0 there" in output
    with pytest.raises(PluginError, match="offers no second opinion"):
        call("exact", "--cases", str(judge), "--second-opinion")


def test_disagreement_fails_only_where_asked(judge: Path) -> None:
    fine = judge.with_name("fine.jsonl")
    fine.write_text("\n".join(json.dumps(row) for row in ROWS[:2]))
    flag = "--fail-on-disagreement"
    assert call("judge", "--cases", str(fine), flag)[0] == 0
    assert call("judge", "--cases", str(fine), flag, "--second-opinion")[0] == 0
    for bad in ROWS[2:]:
        fine.write_text(json.dumps(bad))
        assert call("judge", "--cases", str(fine), flag)[0] == 1, bad


def test_lines_that_are_no_cases_are_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    for text in ("{}\n[1]", "{}\n{", '{}\n{"expected": "yes"}'):
        path.write_text(text)
        with pytest.raises(DatasetError, match=r"bad\.jsonl:2"):
            call("exact", "--cases", str(path))
    with pytest.raises(DatasetError, match="can't be read"):
        call("exact", "--cases", str(tmp_path / "absent.jsonl"))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--gold", "4"],
        ["--gold", "4", "--cases", "x"],
        ["--completion", "-", "--cases", "x"],
    ],
)
def test_one_thing_is_judged(arguments: list[str]) -> None:
    assert call("exact", *arguments)[0] == 2


def test_a_problem_is_judged_by_the_verifier_that_reads_it(judge: Path, tmp_path: Path) -> None:
    problem = tmp_path / "problem.json"
    problem.write_text("{")
    completion = tmp_path / "completion.txt"
    completion.write_text("4")
    arguments = ["judge", "--problem", str(problem), "--completion", str(completion)]
    with pytest.raises(DatasetError, match="the problem can't be read"):
        call(*arguments)
    code, output = call(*arguments, "--gold", "4")
    assert code == 2
    assert "either --gold or --problem" in output
