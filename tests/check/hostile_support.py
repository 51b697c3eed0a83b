"""What tests of hostile packages share: a check with small limits, and what it says.

Nothing here is a test.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from check_fixtures import write
from check_words import Files

from prime_core.check.checking import Order, check
from prime_core.check.limits import Limits
from prime_core.check.outcome import Report

LIMITS = Limits(tasks=10, sample=10, item_s=1.5, start_s=8.0)
RULES = ("I01", "I11", "T01", "T02", "H01", "R01")


def checked(files: Files, tmp_path: Path, *rules: str, limits: Limits = LIMITS) -> Report:
    """A check of a hostile distribution."""
    folder = write(files, tmp_path / "hostile")
    return check(Order(str(folder), "silver", rules or RULES, limits=limits))


def statuses(report: Report) -> dict[str, str]:
    """Rule to status."""
    return {outcome.rule.id: outcome.status for outcome in report.outcomes}


def seen(report: Report) -> str:
    """All that findings and reasons say."""
    said = [finding.seen for outcome in report.outcomes for finding in outcome.findings]
    return "\n".join(said + [outcome.reason for outcome in report.outcomes])


def jailed(report: Report) -> bool:
    """The strongest isolation held, so that nothing may have come through."""
    return report.isolation.startswith("namespaces")


def running() -> str:
    """The command lines of this machine's processes, however wide."""
    command = ["ps", "-ww", "-eo", "args"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def wait_for(holds: Callable[[], bool]) -> None:
    """Until it does, a minute at most."""
    for _ in range(600):
        if holds():
            return
        time.sleep(0.1)
    raise AssertionError("it never did")
