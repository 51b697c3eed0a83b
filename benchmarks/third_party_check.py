"""What `prime-core check` says of all 105 data sets of reasoning-gym, as silver.

    pip install -c constraints.txt reasoning-gym
    nice python benchmarks/third_party_check.py [DATASET...] [--state FOLDER] [--json | --page]

One data set after the other, most in three to five seconds of CPU; what was checked already stands
in the state folder and isn't checked again. Without names it writes third_party_check.json beside
this file. It exits 1 where a known defect isn't found, a shown completion doesn't score as shown,
or fewer than thirty data sets hold silver.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from third_party.page import page
from third_party.sweep import check_dataset, datasets
from third_party.table import missing, summary, table

RESULTS = Path(__file__).with_suffix(".json")


def main(arguments: Sequence[str] | None = None) -> int:
    """Check, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="default: all of them")
    parser.add_argument("--state", type=Path, default=Path(".third-party"), help="rows, one a file")
    parser.add_argument("--again", action="store_true", help="check what was checked before, too")
    parser.add_argument("--out", type=Path, default=RESULTS, help="where all rows are written to")
    parser.add_argument("--page", action="store_true", help="print the tables of the docs")
    parser.add_argument("--json", action="store_true", help="print the rows, not the table")
    given = parser.parse_args(arguments)
    if importlib.util.find_spec("reasoning_gym") is None:
        print("reasoning-gym isn't installed: pip install -c constraints.txt reasoning-gym")
        return 0
    given.state.mkdir(parents=True, exist_ok=True)
    rows = [row(name, given.state, given.again) for name in given.datasets or datasets()]
    if given.page:
        print(page(rows))
    else:
        print(json.dumps(rows, indent=1) if given.json else table(rows))
    problems = missing(rows, whole=not given.datasets)
    if not given.datasets:
        given.out.write_text(json.dumps({**summary(rows), "rows": rows}, indent=1) + "\n")
        print(json.dumps(summary(rows), indent=1), file=sys.stderr)
    for problem in problems:
        print(f"MISSED: {problem}", file=sys.stderr)
    return 1 if problems else 0


def row(dataset: str, state: Path, again: bool) -> dict[str, Any]:
    """The row of a data set: what was seen before, or what is seen now."""
    kept = state / f"{dataset.replace(':', '-')}.json"
    if kept.is_file() and not again:
        known: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8"))
        return known
    found = check_dataset(dataset)
    temporary = kept.with_suffix(".part")
    temporary.write_text(json.dumps(found, indent=1), encoding="utf-8")
    temporary.replace(kept)
    failed = " ".join(each["rule"] for each in found["failures"])
    print(f"{dataset}: {found['reached']} {failed} ({found['cpu_s']} s)", file=sys.stderr)
    return found


if __name__ == "__main__":
    sys.exit(main())
