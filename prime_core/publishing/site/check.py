"""What a project's page shows of the check: each rule's verdict, and exploits that were found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from prime_core.publishing.publication import Check
from prime_core.publishing.site.parts import badge, fold, number, said, table

WORST_FIRST = ("failed", "warned", "undecided", "exempt", "passed", "not applicable")


def check_part(check: Check, report: Mapping[str, Any]) -> str:
    """The section of the check; a version that was published without one says so."""
    if check.level == "none":
        return (
            '<section><h2>Check</h2><p class="warning">Published without a check: nothing is known '
            "of its reward.</p></section>"
        )
    rules = [rule for rule in report.get("rules", []) if isinstance(rule, dict)]
    rules.sort(key=lambda rule: _rank(str(rule.get("status"))))
    rows = [
        (
            f"<code>{escape(str(rule.get('id', '')))}</code>",
            escape(str(rule.get("title", rule.get("name", "")))),
            escape(str(rule.get("level", ""))),
            badge(str(rule.get("status", "")), str(rule.get("status", "")).replace(" ", "-")),
            _notes(rule),
        )
        for rule in rules
    ]
    counted = f"{check.passed} rules passed, {len(check.exempt)} exempt"
    shown = fold("Every rule", table(("Rule", "What must hold", "Level", "", "Notes"), rows))
    exploits = "".join(exploit_parts(rules))
    return (
        f"<section><h2>Check</h2><p>{badge(check.level, check.level)} {counted}, by "
        f"{escape(check.checker)}.</p>{shown}"
        f"{'<h3>Exploits</h3>' + exploits if exploits else ''}</section>"
    )


def _rank(status: str) -> int:
    return WORST_FIRST.index(status) if status in WORST_FIRST else 0


def _notes(rule: Mapping[str, Any]) -> str:
    """Reasons, what was seen, and measures, as lines."""
    lines = [str(rule[key]) for key in ("reason",)
             if isinstance(rule.get(key), str) and rule[key]]  # fmt: skip
    lines += [str(finding.get("seen", "")) for finding in findings(rule)]
    measures = rule.get("measures")
    if isinstance(measures, dict):
        lines += [f"{key.replace('_', ' ')}: {value}" for key, value in measures.items()]
    return "<br>".join(escape(line[:500]) for line in lines)


def findings(rule: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The findings of a rule of the report."""
    found = rule.get("findings")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def exploit_parts(rules: list[dict[str, Any]]) -> Iterator[str]:
    """Transcripts of the completions that show a finding, a known or an exempt one."""
    for rule in rules:
        for finding in findings(rule):
            exploit = finding.get("exploit")
            if not isinstance(exploit, dict):
                continue
            value = exploit.get("value")
            score = number(value if isinstance(value, int | float) else None)
            text = str(exploit.get("recipe") or exploit.get("text", ""))[:4000]
            yield fold(
                f"{rule.get('id', '')}: {finding.get('seen', '')}"[:300],
                f'<p class="role">task {escape(str(exploit.get("task", "")))}, score {score} '
                f"({escape(str(exploit.get('status', '')))})</p>{said(text)}",
            )
