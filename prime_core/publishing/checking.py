"""Runs `prime-core check` in a process of its own and reads its report.

Called by `publish` before it signs anything. Invariant: a report that isn't understood is an error,
never a pass.
"""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core import __version__
from prime_core.api.errors import FormatError, IntegrityError, RunError
from prime_core.publishing.publication import LEVELS, Check
from prime_core.publishing.wheel import Wheel

LIMIT_S = 4 * 3600  # a check at gold trains
SHOWN = 8  # failed rules that the error names


@dataclass(frozen=True, slots=True)
class Checked:
    """A report's bytes, and what the signed record says of it."""

    report: bytes
    check: Check


def unchecked() -> Checked:
    """What stands for a report where no check was asked for."""
    return Checked(b'{"level":"none","rules":[]}\n', Check(level="none"))


def run_check(project: Path, level: str, wheel: Wheel) -> Checked:
    """Check a project at a level.

    Args:
        wheel: what was built of it; the report must be of the same files.

    Raises:
        RunError: it doesn't pass (names the rules), or the check can't run.
        FormatError: the report isn't one.
        IntegrityError: it is of other files than the wheel's.
    """
    command = [sys.executable, "-m", "prime_core", "check", str(project)]
    try:
        done = subprocess.run(
            [*command, "--level", level, "--format", "json"],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the check takes over {LIMIT_S} s", where=str(project)) from error
    try:
        report = json.loads(done.stdout)
    except ValueError as error:
        raise RunError(
            f"`prime-core check` ended with code {done.returncode} and without a report:\n"
            f"{(done.stderr or done.stdout).strip()[-2000:]}",
            where=str(project),
            fix=f"make `prime-core check {project} --level {level}` work",
        ) from error
    checked = read_report(report, level, str(project))
    seen = tuple(report.get(key) for key in ("name", "version", "wheel_digest"))
    if seen != (wheel.name, wheel.version, wheel.content_sha256):
        raise IntegrityError(
            f"the check looked at {seen[0]} {seen[1]} of other files than the wheel to be signed",
            where=str(project),
            fix="publish again, and change nothing meanwhile",
        )
    return checked


def read_report(report: object, level: str, where: str) -> Checked:
    """The report of a check that passed at a level.

    Raises:
        RunError: it didn't pass.
        FormatError: it isn't a report of that level.
    """
    if not isinstance(report, dict) or not isinstance(report.get("passed"), bool):
        raise FormatError("the check's report isn't one", where=where)
    rules = report.get("rules")
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise FormatError("the check's report has no rules", where=where)
    if report.get("level") != level or level not in LEVELS:
        raise FormatError(f"the report is of level {report.get('level')!r}", where=where)
    if not report["passed"]:
        raise _refused(rules, level, where)
    exempt = sorted({str(rule.get("id")) for rule in rules if rule.get("status") == "exempt"})
    for rule in rules:
        _for_readers(rule, where)
    checker = report.get("checker") or f"prime-core {__version__}"
    return Checked(
        (json.dumps(report, indent=1, sort_keys=True, ensure_ascii=True) + "\n").encode(),
        Check.model_validate(
            {
                "level": level,
                "checker": str(checker),
                "passed": sum(rule.get("status") == "passed" for rule in rules),
                "exempt": tuple(exempt),
            }
        ),
    )


def _for_readers(rule: Mapping[str, Any], where: str) -> None:
    """Let commands of exempt findings name no folder of the publisher's: readers install it."""
    package = f" --package {shlex.quote(where)}"
    findings = rule.get("findings")
    for finding in findings if isinstance(findings, list) else []:
        if isinstance(finding, dict) and isinstance(finding.get("reproduce"), str):
            finding["reproduce"] = finding["reproduce"].replace(package, "")


def _refused(rules: list[dict[str, Any]], level: str, where: str) -> RunError:
    failed = [rule for rule in rules if rule.get("status") in ("failed", "undecided")]
    lines = [f"  {_line(rule)}" for rule in failed[:SHOWN]]
    lines += [f"  and {len(failed) - SHOWN} more"] if len(failed) > SHOWN else []
    return RunError(
        "\n".join([f"it doesn't pass the check at level {level}:", *lines]),
        where=where,
        fix=f"see `prime-core check {where} --level {level}`",
    )


def _line(rule: Mapping[str, Any]) -> str:
    found = rule.get("findings")
    first = found[0] if isinstance(found, list) and found and isinstance(found[0], dict) else {}
    seen = str(first.get("seen") or rule.get("reason") or rule.get("title") or "")
    return f"{rule.get('id')} {rule.get('status')}: {' '.join(seen.split())[:300]}"
