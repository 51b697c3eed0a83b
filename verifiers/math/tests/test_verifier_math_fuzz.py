"""Random and mutated texts: no crash, no other value than 0 and 1, no gold that isn't itself."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())
ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "judged.jsonl").read_text(encoding="utf-8").splitlines()
]
GOLDS = [row["gold"] for row in ROWS]
ANSWERS = [
    f"\\boxed{{{text}}}" if row["form"] == "box" else text
    for row in ROWS
    for text in (*row["right"], *row["wrong"])
]
_TOKENS = (
    r"\frac { } ( ) [ ] ^ _ \sqrt \pm 1 9 x \boxed{ \text{ \cup , ; = < \le | ! \% % \circ \infty "
    r"\{ \} . ... \ldots \pi i e \sin \ln - + / * \cdot \begin{pmatrix} \end{pmatrix} & \\ : "
    r"\in cm or and $ \$ ½ √ ² ٣ \binom \overline <think> </think> #### Answer: \log_ 10 100000 "
    r"f( \left \right \mid ' \setminus \mathbb{R} \ne \approx \mathrm{ _{ ^{ \int \sum \gcd"
)
FRAGMENTS = [*_TOKENS.split(), " ", "\n", "\x00", "\ud800", "5 feet", "3 inches"]


def mutated(text: str, rng: random.Random) -> str:
    parts = list(text) if rng.random() < 0.5 else [text]
    for _ in range(rng.randint(1, 6)):
        place = rng.randint(0, len(parts))
        draw = rng.random()
        if draw < 0.6:
            parts.insert(place, rng.choice(FRAGMENTS))
        elif draw < 0.8 and parts:
            del parts[min(place, len(parts) - 1)]
        else:
            parts.insert(place, rng.choice(GOLDS))
    return "".join(parts)


def examine(seed: int, count: int) -> None:
    """Judge `count` random pairs; any exception or odd value fails."""
    rng = random.Random(seed)
    for _ in range(count):
        gold = rng.choice(GOLDS)
        if rng.random() < 0.4:
            gold = mutated(gold, rng)
        if rng.random() < 0.7:
            text = mutated(rng.choice(ANSWERS), rng)
        else:
            text = "".join(rng.choice(FRAGMENTS) for _ in range(rng.randint(1, 25)))
        told = VERIFIER.explain(gold, text)
        assert told.value in (0.0, 1.0, None), (gold, text)
        assert (told.value is None) == (told.status == "error"), (gold, text)
        if rng.random() < 0.1:
            report = VERIFIER.check_gold(gold)
            assert report.ok or "equal itself" not in report.reason, (gold, report)


def test_a_slice_of_mutated_completions() -> None:
    examine(20_260_101, 4_000)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_a_million_mutated_completions(seed: int) -> None:
    examine(seed, 50_000)


@given(st.text(), st.text())
def test_any_text_gets_a_verdict(gold: str, text: str) -> None:
    told = VERIFIER.explain(gold, f"\\boxed{{{text}}}")
    assert told.value in (0.0, 1.0, None)
    assert VERIFIER.explain(gold, text) == VERIFIER.explain(gold, text)


@given(st.text("0123456789xyi+-*/^(){}[],.=<>\\ $%!|_:", max_size=40))
def test_any_formula_like_gold_equals_itself_or_is_refused(gold: str) -> None:
    report = VERIFIER.check_gold(gold)
    assert report.ok or "equal itself" not in report.reason, report


DIGEST = """
import hashlib, json, sys
from pathlib import Path
from prime_verifier_math import MathParams, MathVerifier
rows = [json.loads(line) for line in Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()]
pairs = [(r["gold"], "\\\\boxed{" + t + "}" if r["form"] == "box" else t)
         for r in rows for t in (*r["right"], *r["wrong"])]
order = reversed(range(len(pairs))) if sys.argv[2] == "backwards" else range(len(pairs))
verifier = MathVerifier(MathParams())
told = {i: repr(verifier.explain(*pairs[i])) for i in order}
print(hashlib.sha256("".join(told[i] for i in range(len(pairs))).encode()).hexdigest())
"""


@pytest.mark.integration
def test_order_process_hash_seed_and_locale_change_no_verdict() -> None:
    table = str(Path(__file__).parent / "judged.jsonl")
    digests = set()
    for seed, order, locale in (("0", "forwards", "C"), ("77", "backwards", "tr_TR.UTF-8")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale, "PYTHONUTF8": "1"}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST, table, order],
            check=True, capture_output=True, text=True, env=environment,
        )  # fmt: skip
        digests.add(done.stdout)
    assert len(digests) == 1
