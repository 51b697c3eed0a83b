"""The sweep's results as the page docs/explanation/third-party-data-sets.md shows them.

`benchmarks/third_party_check.py --page` prints the tables; the words around them stand in the page.
"""

from __future__ import annotations

from collections.abc import Sequence

from third_party.table import Row, rules


def page(rows: Sequence[Row]) -> str:
    """Two Markdown tables: what failed where, and the data sets that hold silver."""
    lines = ["| data set | reached | failed rules | for example |", "|---|---|---|---|"]
    lines += [
        f"| {row['dataset']} | {row['reached']} | {', '.join(rules(row))} | {example(row)} |"
        for row in rows
        if row["failures"]
    ]
    held = [str(row["dataset"]) for row in rows if row["reached"] == "silver"]
    blind = [str(row["dataset"]) for row in rows if row["undecided"] and not row["failures"]]
    lines += ["", f"{len(held)} hold silver: {', '.join(held)}."]
    if blind:
        lines += ["", f"Undecided: {', '.join(blind)}."]
    return "\n".join(lines) + "\n"


def example(row: Row) -> str:
    """The finding that says most: one with a completion where there is one."""
    findings = [(each["rule"], finding) for each in row["failures"] for finding in each["findings"]]
    shown = [(rule, each) for rule, each in findings if each.get("completion")]
    # What is paid says more than what raises.
    rule, found = max(shown or findings, key=lambda pair: pair[1].get("value") or 0.0)
    text = str(found["seen"]).replace("|", "\\|")
    return f"{rule}: {text[:160]}{'...' if len(text) > 160 else ''}"
