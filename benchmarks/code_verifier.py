"""How right, how cheap and how tight the code verifier is.

Run it with `python benchmarks/code_verifier.py [PART...] [--quick] [--count N] [--json]`; parts are
cases, references, equal, cost, latency, throughput and soak, all of them by default. It exits 1
where a requirement is missed; `--quick` takes a slice of everything.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from code_verification.cost import compare, latency
from code_verification.part import Part, report
from code_verification.scaling import throughput
from code_verification.soak import soak
from code_verification.verdicts import judge_cases, judge_references, stay_equal

SUBMISSIONS = 10_000


def parts(quick: bool, count: int | None) -> dict[str, Callable[[Path], Part]]:
    """What can be run, by name."""
    submissions = count or (200 if quick else SUBMISSIONS)
    return {
        "cases": judge_cases,
        "references": lambda cache: judge_references(cache, 24 if quick else 1),
        "equal": lambda cache: stay_equal(cache, 2 if quick else 5),
        "cost": lambda cache: compare(cache, 0.25 if quick else 1.0),
        "latency": lambda cache: latency(cache, 100 if quick else 500),
        "throughput": lambda cache: throughput(cache, 20 if quick else 100),
        "soak": lambda cache: soak(cache, submissions),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="PART")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--count", type=int, help="submissions of the soak")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    known = parts(arguments.quick, arguments.count)
    unknown = set(arguments.names) - set(known)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # jails of another user read the staged interpreter there
        done = [known[name](Path(folder)) for name in arguments.names or known]
    print(json.dumps([vars(part) for part in done], indent=2) if arguments.json else report(done))
    return 1 if any(part.failures for part in done) else 0


if __name__ == "__main__":
    sys.exit(main())
