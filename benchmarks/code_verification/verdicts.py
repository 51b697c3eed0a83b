"""Right verdicts: labelled cases, references and their wrong copies; and equal ones, whatever else
the machine does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from prime_verifier_code import CodeVerifier
from prime_verifier_code.mutants import Mutant, mutants

from code_verification.boxes import open_verifier
from code_verification.material import Absent, Reference, cases, fenced, references
from code_verification.part import Part

REPEATS = 5
STEADY_STEP = 8  # of the references that are judged again and again
PLAIN_CPU_S = 10  # of all assertions together; a busy machine changes nothing
CODE_LIMIT_S = 3.0


def judge_cases(cache: Path) -> Part:
    """Every labelled case."""
    part = Part("labelled cases")
    try:
        rows = cases()
    except Absent as error:
        part.skipped = str(error)
        return part
    counts: Counter[str] = Counter()
    with open_verifier(cache) as verifier:
        for row in rows:
            score = verifier.verify(*verifier.from_case(row))
            counts[f"{row['kind']} right"] += score.value == row["expected_reward"]
            part.require(
                score.value == row["expected_reward"],
                f"{row['id']} ({row['note'][:60]}): {score.value} {score.evidence.get('status')}",
            )
    part.figures = {"cases": len(rows), **counts}
    return part


def passes_plainly(program: str, tests: str) -> bool:
    """The data set's own way: assertions behind the program, in one process."""
    limit = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({PLAIN_CPU_S},) * 2)"
    command = [sys.executable, "-c", f"{limit}\n{program}\n\nimport sys\n{tests}\n"]
    return subprocess.run(command, capture_output=True).returncode == 0


def wrong_copies(reference: Reference) -> list[Mutant]:
    """One copy of each sort, changed in the solution itself, that fails the plain tests."""
    first = reference.given.count("\n")
    changed = [mutant for mutant in mutants(reference.program) if mutant.line > first]
    found = {mutant.mutation: mutant for mutant in reversed(changed)}
    return [
        mutant
        for mutant in found.values()
        if not passes_plainly(mutant.source, reference.tests)
    ]  # fmt: skip


def value_of(verifier: CodeVerifier, reference: Reference, program: str) -> float | None:
    """The value of a program for a reference's problem."""
    data = {**reference.data, "time_limit_s": CODE_LIMIT_S}
    return verifier.judge_data(data, fenced(program)).value


def judge_references(cache: Path, step: int) -> Part:
    """References pass; copies that fail the plain tests fail here too."""
    part = Part("references and their wrong copies")
    try:
        rows = list(references())[::step]
    except Absent as error:
        part.skipped = str(error)
        return part
    copies = 0
    with open_verifier(cache) as verifier:
        for reference in rows:
            value = value_of(verifier, reference, reference.program)
            part.require(value == 1.0, f"{reference.name}: its reference gets {value}")
            for mutant in wrong_copies(reference):
                copies += 1
                value = value_of(verifier, reference, mutant.source)
                part.require(
                    value == 0.0,
                    f"{reference.name}: {mutant.mutation} in line {mutant.line} gets {value}",
                )
    part.figures = {"references": len(rows), "wrong copies": copies}
    return part


# --- equal verdicts ------------------------------------------------------------------------------


def verdict_lines(cache: Path) -> list[str]:
    """Value and status of each case and of some references, as text that can be compared."""
    lines = []
    with open_verifier(cache) as verifier:
        for row in cases():
            score = verifier.verify(*verifier.from_case(row))
            lines.append(f"{row['id']} {score.value} {score.evidence.get('status')}")
        lines += [
            f"{reference.name} {value_of(verifier, reference, reference.program)}"
            for reference in list(references())[::STEADY_STEP]
        ]
    return lines


CHILD = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from code_verification.verdicts import verdict_lines
print("\\n".join(verdict_lines(Path(sys.argv[2]))))
"""
BURNER = "while True: pass"


def _elsewhere(cache: Path, **variables: str) -> list[str]:
    """The verdicts of a fresh process with other variables."""
    command = [sys.executable, "-c", CHILD, str(Path(__file__).parents[1]), str(cache)]
    found = subprocess.run(
        command, env={**os.environ, **variables}, capture_output=True, text=True, check=True
    )
    return found.stdout.splitlines()


def stay_equal(cache: Path, repeats: int = REPEATS) -> Part:
    """Verdicts of repeats, under a burner on each core, and with another hash seed and locale."""
    part = Part("equal verdicts")
    try:
        first = verdict_lines(cache)
    except Absent as error:
        part.skipped = str(error)
        return part
    runs = {f"repeat {number}": _elsewhere(cache) for number in range(2, repeats + 1)}
    burners = [subprocess.Popen([sys.executable, "-c", BURNER]) for _ in range(os.cpu_count() or 1)]
    try:
        runs["under load"] = _elsewhere(cache)
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()
    runs["other hash seed and locale"] = _elsewhere(
        cache, PYTHONHASHSEED="4711", LC_ALL="tr_TR.UTF-8", LANG="tr_TR.UTF-8", TZ="Asia/Tokyo"
    )
    for name, lines in runs.items():
        different = [pair for pair in zip(first, lines, strict=True) if pair[0] != pair[1]]
        part.require(not different, f"{name}: {json.dumps(different[:5])}")
    part.figures = {"verdicts": len(first), "runs": 1 + len(runs)}
    return part
