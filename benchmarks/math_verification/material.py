"""What the verifier is measured on: labelled cases, real completions, and golds in two writings.

Read from the shared folder, never copied; every pair has an id that the list of disagreements
names. A file that isn't there is a reason to skip its part.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "math_cases.jsonl"
GSM8K = SHARED / "data" / "gsm8k"
MATH500 = SHARED / "data" / "math500"
QWEN = SHARED / "data" / "qwen_math_outputs" / "math_cot.jsonl"

MODELS = ("6b_finetuning", "6b_verification", "175b_finetuning", "175b_verification")


@dataclass(frozen=True, slots=True)
class Pair:
    """A gold answer, a completion, and what its publisher says of them."""

    id: str
    gold: str
    completion: str
    published: bool


class Absent(Exception):
    """A part's data isn't here."""


def _need(path: Path) -> Path:
    if not path.is_file():
        raise Absent(f"{path.name} isn't in the shared folder; set PRIME_SHARED to it")
    return path


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with _need(path).open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def gsm8k_solutions() -> list[Pair]:
    """What four models answered, with their published verdicts."""
    return [
        Pair(f"gsm8k/{number}/{model}", row["ground_truth"], row[model]["solution"],
             row[model]["is_correct"])
        for number, row in enumerate(_lines(GSM8K / "example_model_solutions.jsonl"))
        for model in MODELS
    ]  # fmt: skip


def gsm8k_golds() -> list[Pair]:
    """Each test gold against its own solution, in a box, and said in words."""
    pairs = []
    for number, row in enumerate(_lines(GSM8K / "test.jsonl")):
        gold = row["answer"].rpartition("####")[2].strip()
        ways = {"solution": row["answer"], "box": rf"So \boxed{{{gold}}}.",
                "words": f"The answer is {gold}."}  # fmt: skip
        pairs += [Pair(f"gsm8k-test/{number}/{way}", gold, ways[way], True) for way in ways]
    return pairs


def qwen_completions() -> list[Pair]:
    """What Qwen2.5-Math answered on MATH, eight completions a problem, with published verdicts."""
    return [
        Pair(f"qwen/{row['idx']}/{number}", row["gt"], said, bool(verdict))
        for row in _lines(QWEN)
        for number, (said, verdict) in enumerate(zip(row["code"], row["score"], strict=True))
    ]


def _problem_key(problem: str) -> str:
    """A problem without the writing of its LaTeX: the two copies number their rows differently."""
    return re.sub(r"\W|_|dfrac|tfrac|frac|left|right", "", problem)


def math500_writings() -> dict[str, tuple[str, str]]:
    """The id of each problem of MATH-500, and its gold answer in two writings."""
    first = json.loads(_need(MATH500 / "math500.json").read_text(encoding="utf-8"))
    columns = json.loads(_need(MATH500 / "math500_prime_cleaned.json").read_text(encoding="utf-8"))
    second = {
        _problem_key(problem): columns["expected_answer"][row]
        for row, problem in columns["problem"].items()
    }
    return {
        row["unique_id"]: (row["answer"], second[_problem_key(row["problem"])]) for row in first
    }


def math500_twins() -> list[Pair]:
    """Each gold against itself and its twin, both ways: all equal."""
    return [
        Pair(f"math500/{name}/{gold}{answer}", writings[gold], rf"\boxed{{{writings[answer]}}}",
             True)
        for name, writings in math500_writings().items()
        for gold in (0, 1)
        for answer in (0, 1)
    ]  # fmt: skip


def math500_others(step: int) -> list[Pair]:
    """Golds of different problems that differ: none equals another.

    Two golds differ unless spaces or twins connect them. Every `step`-th pair is taken.
    """
    writings = math500_writings()
    group: dict[str, str] = {}

    def find(text: str) -> str:
        while group.setdefault(text, text) != text:
            text = group[text]
        return text

    names: dict[str, str] = {}
    for name, both in writings.items():
        for text in both:
            names.setdefault(text, name)
            group[find(text)] = find(_bare(text))
        group[find(both[0])] = find(both[1])
    texts = sorted(names)
    pairs = [(a, b) for a in texts for b in texts if find(a) != find(b)]
    return [
        Pair(f"math500/{names[a]}={names[b]}", a, rf"\boxed{{{b}}}", False)
        for a, b in pairs[::step]
    ]


def _bare(text: str) -> str:
    """Without spaces, size commands and the text command."""
    return re.sub(r"\s|\\[!,;: ]|\\left(?![a-z])|\\right(?![a-z])|\\text(?=\{)", "", text)
