"""Coverage-guided fuzzing of the math verifier with atheris: `FUZZ_SECONDS=600 make fuzz`.

Not part of the tests: atheris has wheels for few platforms. It looks for what the seeded fuzzing of
tests/test_verifier_math_fuzz.py looks for, but follows the branches that an input opens.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["prime_verifier_math"]):
    from prime_verifier_math import MathParams, MathVerifier

VERIFIER = MathVerifier(MathParams())


def judge_one_input(data: bytes) -> None:
    """One gold and one completion; anything but a verdict is a finding."""
    provider = atheris.FuzzedDataProvider(data)
    gold = provider.ConsumeUnicode(64)
    text = provider.ConsumeUnicode(512)
    told = VERIFIER.explain(gold, f"\\boxed{{{text}}}")
    assert told.value in (0.0, 1.0, None)
    assert (told.value is None) == (told.status == "error")
    report = VERIFIER.check_gold(gold)
    assert report.ok or "equal itself" not in report.reason


if __name__ == "__main__":
    atheris.Setup(sys.argv, judge_one_input)
    atheris.Fuzz()
