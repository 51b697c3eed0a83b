"""The sweep's rows as a table, their sums, and what they had to show and didn't.

`benchmarks/third_party_check.py` prints it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]

SILVER = 30  # data sets that must hold it, so that the ladder is no wall
# Defects of version 0.1.25 that were known before the ladder looked: data set to rules, one of
# which must fail.
KNOWN: Mapping[str, tuple[str, ...]] = {
    "game_of_life_halting": ("T04",),  # pays any text: it compares the truth of two texts
    "coin_flip": ("H01",),  # pays 0: partial credit by the first characters
    "isomorphic_strings": ("N01",),  # other questions under another hash seed
    "ransom_note": ("N01",),
    "polynomial_multiplication": ("N01",),
    "knight_swap": ("N01",),  # other answers
    "word_ladder": ("N01",),
    "codeio": ("N01", "N03", "N04", "D03"),
    "prime_factorization": ("R01",),  # raises on what is no number
    "boxnet": ("R01",),  # raises on JSON of another type
}


def rules(row: Row) -> list[str]:
    """Ids of the failed rules."""
    return [str(each["rule"]) for each in row["failures"]]


def table(rows: Sequence[Row]) -> str:
    """A line a data set: level, failed rules, the first thing seen."""
    lines = []
    for row in rows:
        first = row["failures"][0]["findings"][0]["seen"] if row["failures"] else ""
        lines.append(f"{row['dataset']:28} {row['reached']:7} {' '.join(rules(row)):24} {first}")
    return "\n".join(lines)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Counts over all rows."""
    looked = [
        finding["reproduced"]
        for row in rows
        for each in row["failures"]
        for finding in each["findings"]
        if finding["reproduced"] is not None
    ]
    return {
        "data sets": len(rows),
        "reached": dict(Counter(str(row["reached"]) for row in rows)),
        "failed rules": dict(sorted(Counter(rule for row in rows for rule in rules(row)).items())),
        "undecided": sum(bool(row["undecided"]) for row in rows),
        "scored again": len(looked),
        "scored the same": sum(looked),
        "cpu seconds": round(sum(row["cpu_s"] for row in rows)),
        "checkers": sorted({str(row["checker"]["checker"]) for row in rows}),
    }


def missing(rows: Sequence[Row], *, whole: bool) -> list[str]:
    """What had to be shown and wasn't.

    Args:
        whole: the rows are all data sets, so that counts must hold too.
    """
    problems = []
    for row in rows:
        wanted = KNOWN.get(str(row["dataset"]), ())
        if wanted and not set(wanted) & set(rules(row)):
            problems.append(f"{row['dataset']} is known to fail {' or '.join(wanted)}")
        for each in row["failures"]:
            for finding in each["findings"]:
                if finding["reproduced"] is False:
                    said = f"{row['dataset']} {each['rule']}: {finding['seen']}"
                    problems.append(f"a second look doesn't see the same: {said}")
    held = sum(row["reached"] == "silver" for row in rows)
    if whole and held < SILVER:
        problems.append(f"{held} data sets hold silver, {SILVER} must")
    return problems
