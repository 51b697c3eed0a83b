"""Reports in the formats that people and machines read: JSON, JUnit, SARIF, GitHub, HTML.

`prime-core check --format` chooses one. Invariant: every format says of every finding which rule,
what was seen, and how to fix it.
"""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from typing import Any

from prime_core import __version__
from prime_core.check.html_format import as_html
from prime_core.check.outcome import Outcome, Report
from prime_core.check.rule import Finding
from prime_core.check.text_format import (
    as_text,
    clean,
    printable,
    reproduce,
    score_text,
    visible,
)

TEXT_LIMIT = 4000  # characters of a completion without a recipe in JSON
SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def told(outcome: Outcome, finding: Finding) -> str:
    """A finding in one paragraph: what was seen, the completion and its score, the fix."""
    said = clean(finding.seen)
    if finding.exploit is not None:
        exploit = finding.exploit
        said += (
            f"; task {exploit.index}, completion {printable(exploit.text)}, "
            f"score {score_text(exploit)}"
        )
    said += f". Fix: {finding.fix or outcome.rule.fix}"
    return f"{said}. Exempt: {clean(outcome.reason)}" if outcome.status == "exempt" else said


def as_json(report: Report) -> str:
    """Everything, for machines."""
    outcomes = []
    for outcome in report.outcomes:
        findings = []
        for finding in outcome.findings:
            shown = asdict(finding) | {"fix": finding.fix or outcome.rule.fix}
            shown["reproduce"] = reproduce(report, outcome, finding)
            if finding.exploit is not None and len(finding.exploit.text) > TEXT_LIMIT:
                shown["exploit"]["text"] = finding.exploit.text[:TEXT_LIMIT]
                shown["exploit"]["characters"] = len(finding.exploit.text)
            findings.append(shown)
        outcomes.append(_json(outcome, findings))
    whole = {
        "schema": "prime-core/check/1",
        "name": report.name,
        "version": report.version,
        "wheel_digest": report.wheel_digest,
        "level": report.asked,
        "passed": report.exit_code == 0,
        "claimed": report.claimed,
        "reached": report.reached,
        "exit_code": report.exit_code,
        "checker": " ".join(f"{name} {value}" for name, value in report.versions.items()),
        "isolation": report.isolation,
        "counts": dict(report.counts),
        "rules": outcomes,
    }
    return json.dumps(whole, indent=2)


def _json(outcome: Outcome, findings: list[dict[str, Any]]) -> dict[str, Any]:
    rule = outcome.rule
    return {
        "id": rule.id,
        "name": rule.name,
        "title": rule.title,
        "level": rule.level,
        "severity": rule.severity,
        "cost": rule.cost,
        "subject": outcome.subject,
        "status": outcome.status,
        "reason": outcome.reason,
        "measures": dict(outcome.measures),
        "seconds": round(outcome.seconds, 3),
        "cached": outcome.cached,
        "findings": findings,
    }


def as_junit(report: Report) -> str:
    """JUnit XML: one test case a rule and subject."""
    counts = report.counts
    suite = ET.Element(
        "testsuite",
        name=_xml(clean(f"prime-core check {report.name} {report.version}")),
        tests=str(len(report.outcomes)),
        failures=str(counts["failed"]),
        errors=str(counts["undecided"]),
        skipped=str(counts["exempt"] + counts["not applicable"]),
    )
    for outcome in report.outcomes:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=_xml(outcome.subject),
            name=f"{outcome.rule.id} {outcome.rule.name}",
            time=f"{outcome.seconds:.3f}",
        )
        text = "\n".join(told(outcome, finding) for finding in outcome.findings)
        if outcome.status == "failed":
            ET.SubElement(case, "failure", message=outcome.rule.title).text = _xml(text)
        elif outcome.status == "undecided":
            ET.SubElement(case, "error", message=_xml(clean(outcome.reason)))
        elif outcome.status in ("exempt", "not applicable"):
            ET.SubElement(case, "skipped", message=_xml(clean(outcome.reason)))
        elif text:
            ET.SubElement(case, "system-out").text = _xml(text)
    return ET.tostring(suite, encoding="unicode", xml_declaration=True)


def _xml(text: str) -> str:
    """Without what XML 1.0 can't hold."""
    return "".join(c if c in "\t\n\r" or (c >= " " and c.isprintable()) else "?" for c in text)


def as_sarif(report: Report) -> str:
    """SARIF 2.1.0, which code hosts show beside the lines."""
    used = {outcome.rule.id: outcome.rule for outcome in report.outcomes}
    results = []
    for outcome, finding in found(report):
        location = {
            "physicalLocation": {
                "artifactLocation": {"uri": _file(report, finding)},
                "region": {"startLine": max(1, finding.line)},
            }
        }
        result: dict[str, Any] = {
            "ruleId": outcome.rule.id,
            "level": _severity(outcome, finding),
            "message": {"text": f"{outcome.subject}: {told(outcome, finding)}"},
            "locations": [location],
        }
        if outcome.status == "exempt":
            result["suppressions"] = [{"kind": "external", "justification": outcome.reason}]
        results.append(result)
    driver = {
        "name": "prime-core check",
        "version": __version__,
        "rules": [
            {
                "id": rule.id,
                "name": rule.name,
                "shortDescription": {"text": rule.title},
                "fullDescription": {"text": rule.why},
                "help": {"text": rule.fix},
                "properties": {"level": rule.level, "cost": rule.cost},
            }
            for rule in used.values()
        ],
    }
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def as_github(report: Report) -> str:
    """Workflow commands: annotations on the lines of a pull request, and the sum as a notice."""
    lines = []
    for outcome, finding in found(report):
        sort = {"error": "error", "warning": "warning"}.get(_severity(outcome, finding), "notice")
        place = f"file={_property(_file(report, finding))},line={max(1, finding.line)}"
        title = _property(f"{outcome.rule.id} {outcome.rule.name}: {outcome.subject}")
        lines.append(f"::{sort} {place},title={title}::{_data(told(outcome, finding))}")
    for outcome in report.outcomes:
        if outcome.status == "undecided":
            said = f"{outcome.rule.id} {outcome.subject}: {clean(outcome.reason)}"
            lines.append(f"::error title=undecided::{_data(said)}")
    counts = ", ".join(f"{number} {status}" for status, number in report.counts.items())
    lines.append(f"::notice title={_property(report.name)}::level {report.reached}; {counts}")
    return "\n".join(lines)


def _file(report: Report, finding: Finding) -> str:
    """Where hosts show a finding: they show none without a file."""
    return finding.path or f"{report.folder}pyproject.toml"


def _data(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text)).replace(":", "%3A").replace(",", "%2C")


def found(report: Report) -> Iterator[tuple[Outcome, Finding]]:
    """Every finding with its outcome."""
    for outcome in report.outcomes:
        for finding in outcome.findings:
            yield outcome, finding


def _severity(outcome: Outcome, finding: Finding) -> str:
    if outcome.status == "exempt":
        return "note"
    return finding.severity or outcome.rule.severity


RENDERERS: Mapping[str, Callable[[Report], str]] = {
    "json": as_json,
    "junit": as_junit,
    "sarif": as_sarif,
    "github": as_github,
    "html": as_html,
}


def render(report: Report, form: str, *, verbose: bool = False) -> str:
    """The report in one format; `verbose` matters to text alone."""
    if form == "text":
        return as_text(report, verbose=verbose)
    return visible(RENDERERS[form](report))
