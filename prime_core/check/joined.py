"""Reports of several distributions as one, and findings under the paths that a repository has.

Called by `prime-core check` where it was given several targets. Invariant: the exit code of several
checks is that of the worst.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prime_core import __version__
from prime_core.api import RunError
from prime_core.check.formats import SARIF_SCHEMA, render
from prime_core.check.outcome import Outcome, Report

NOTHING = "no distribution to check"


def worst(reports: Sequence[Report]) -> int:
    """1 where a rule failed anywhere, else 3 where one couldn't be decided, else 0."""
    codes = {report.exit_code for report in reports}
    return 1 if 1 in codes else 3 if 3 in codes else 0


def placed(report: Report, here: Path) -> Report:
    """The report of a folder below `here` with paths from there, where editors and hosts look.

    Other targets, and folders elsewhere, keep the paths inside of the distribution.
    """
    folder = Path(report.target).absolute()
    if not folder.is_dir() or folder == here or not folder.is_relative_to(here):
        return report
    prefix = folder.relative_to(here)

    def moved(outcome: Outcome) -> Outcome:
        findings = tuple(
            replace(each, path=each.path and str(prefix / each.path)) for each in outcome.findings
        )
        return replace(outcome, findings=findings)

    return replace(report, outcomes=tuple(map(moved, report.outcomes)), folder=f"{prefix}/")


def render_all(reports: Sequence[Report], form: str, *, verbose: bool = False) -> str:
    """All reports in one format.

    Raises:
        RunError: there is no such joint format.
    """
    said = [render(report, form, verbose=verbose) for report in reports]
    if form == "json":
        whole = {"schema": "prime-core/checks/1", "reports": [json.loads(each) for each in said]}
        return json.dumps(whole, indent=2)
    if form == "junit":
        suites = ET.Element("testsuites")
        suites.extend(ET.fromstring(each) for each in said)  # noqa: S314 - ours, of a line before
        return ET.tostring(suites, encoding="unicode", xml_declaration=True)
    if form == "sarif":
        return _one_run([json.loads(each)["runs"][0] for each in said])
    if form == "html":
        raise RunError(
            "a page shows one distribution", where="--format html", fix="check them one by one"
        )
    if not said:
        return f"::notice::{NOTHING}" if form == "github" else NOTHING
    return "\n\n".join(said) if form == "text" else "\n".join(said)


def _one_run(runs: Sequence[dict[str, Any]]) -> str:
    """Code hosts take one run of a tool a file."""
    rules = {rule["id"]: rule for run in runs for rule in run["tool"]["driver"]["rules"]}
    driver = {"name": "prime-core check", "version": __version__, "rules": list(rules.values())}
    results = [result for run in runs for result in run["results"]]
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)
