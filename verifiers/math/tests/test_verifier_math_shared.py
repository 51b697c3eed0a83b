"""The shared graded cases and real data: every verdict as labelled."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from prime_verifier_math import MathParams, MathVerifier

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))
VERIFIER = MathVerifier(MathParams())


def shared(name: str) -> Path:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} isn't here; set PRIME_SHARED to the folder that holds it")
    return path


def rows(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in shared(name).read_text(encoding="utf-8").splitlines()]


def test_graded_cases_are_judged_as_labelled() -> None:
    wrong = []
    for row in rows("cases/math_cases.jsonl"):
        told = VERIFIER.explain(row["gold"], row["completion"])
        if (told.value == 1.0) != row["expected"] or told.status == "error":
            wrong.append(row["id"])
    assert wrong == []


def test_injected_code_is_never_run() -> None:
    probes = list(Path("/tmp").glob("mathvprobe*"))
    assert probes == []


def math500() -> list[tuple[str, str]]:
    """The golds of both writings, by problem."""
    plain = json.loads(shared("data/math500/math500.json").read_text(encoding="utf-8"))
    cleaned = json.loads(
        shared("data/math500/math500_prime_cleaned.json").read_text(encoding="utf-8")
    )
    keys = {problem: key for key, problem in cleaned["problem"].items()}
    return [(row["answer"], str(cleaned["expected_answer"][keys[row["problem"]]])) for row in plain]


def box(text: str) -> str:
    return f"\\boxed{{{text}}}"


def test_math500_golds_equal_themselves_and_their_twins() -> None:
    failed = []
    for gold, twin in math500():
        assert VERIFIER.check_gold(gold).ok, gold
        assert VERIFIER.check_gold(twin).ok, twin
        for wanted, answer in ((gold, gold), (twin, twin), (gold, twin)):
            if VERIFIER.explain(wanted, box(answer)).value != 1.0:
                failed.append((wanted, answer))
    assert failed == []


# pairs that are the same answer to different questions, by the rules of units, bases, angles
SAME = {
    frozenset(pair)
    for pair in [
        ("-2,1", "1,-2"), ("120", r"120^\circ"), ("15", r"15\mbox{ cm}^2"), (r"180^\circ", r"\pi"),
        ("30", r"30^\circ"), ("36", r"36^\circ"), ("36", r"\$36"), ("40", "40_9"), ("5", "x=5"),
        ("90", r"90^\circ"), (r"10,\!080", "10080"), (r"2 \sqrt{5}", r"2\sqrt{5}"),
        (r"\frac14", r"\frac{1}{4}"),
    ]
}  # fmt: skip


def golds_that_equal_another(golds: list[str], others: list[str]) -> set[frozenset[str]]:
    return {
        frozenset((gold, other))
        for gold in golds
        for other in others
        if gold != other and VERIFIER.explain(gold, box(other)).value == 1.0
    }


def test_a_slice_of_math500_golds_equal_no_other() -> None:
    golds = sorted({gold for gold, _ in math500()})
    assert golds_that_equal_another(golds[::17], golds) <= SAME


@pytest.mark.slow
def test_math500_golds_equal_no_other() -> None:
    golds = sorted({gold for gold, _ in math500()})
    assert golds_that_equal_another(golds, golds) == SAME


def test_real_gsm8k_solutions_are_judged_as_labelled() -> None:
    wrong = []
    for index, row in enumerate(rows("data/gsm8k/example_model_solutions.jsonl")):
        for key, told in row.items():
            if isinstance(told, dict):
                verdict = VERIFIER.explain(row["ground_truth"], told["solution"])
                if (verdict.value == 1.0) != told["is_correct"]:
                    wrong.append((index, key))
    assert wrong == []


def test_gsm8k_golds_equal_their_own_solutions() -> None:
    wrong = []
    for row in rows("data/gsm8k/test.jsonl"):
        number = row["answer"].rpartition("####")[2].strip()
        if VERIFIER.explain(number, row["answer"]).value != 1.0:
            wrong.append(number)
    assert wrong == []


def test_real_qwen_completions_are_judged_as_published() -> None:
    wrong = []
    for row in rows("data/qwen_math_outputs/math_cot.jsonl"):
        for index, (code, score) in enumerate(zip(row["code"], row["score"], strict=True)):
            if (VERIFIER.explain(row["gt"], code).value == 1.0) != score:
                wrong.append((row["idx"], index))
    assert wrong == []


def test_math_train_golds_equal_themselves() -> None:
    failed = []
    for row in json.loads(shared("data/math_train/math_train.json").read_text(encoding="utf-8")):
        gold = row["answer"]
        if gold and gold.strip() and VERIFIER.explain(gold, box(gold)).value != 1.0:
            failed.append(gold)
    assert failed == []
