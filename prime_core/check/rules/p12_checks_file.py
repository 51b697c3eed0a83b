"""P12: checks.toml can be read, and exempts existing rules with reasons."""

from __future__ import annotations

from prime_core.check.checks_file import NAME
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

LEAST = 15  # characters of a reason


def examine(subject: Subject) -> Result:
    """Hold its exemptions against the registry and its cases against the entry points."""
    from prime_core.check.registry import rules

    found = subject.distribution
    if found.checks_error:
        return failed(Finding(found.checks_error, path=NAME, line=1))
    known = {rule.id for rule in rules()}
    labels = {entry.label for entry in found.entries}
    findings = [
        Finding(f"it exempts {rule!r}, which is no rule", path=NAME, line=1)
        for rule in found.checks.exempt
        if rule not in known
    ]
    findings += [
        Finding(f"the exemption of {rule} has no reason that says something", path=NAME, line=1)
        for rule, reason in found.checks.exempt.items()
        if len(reason.strip()) < LEAST
    ]
    findings += [
        Finding(f"it configures {case.plugin!r}, which isn't one of its plugins", path=NAME, line=1)
        for case in found.checks.cases
        if case.plugin not in labels
    ]
    return failed(*findings, exemptions=str(len(found.checks.exempt)))


RULE = Rule(
    id="P12",
    name="checks-file",
    title="checks.toml can be read, and every exemption names a rule and a reason",
    level="bronze",
    cost="static",
    why="An exemption without a reason is a rule that was switched off.",
    fix="see docs/how-to/check-an-environment.md for the file's form",
    bad='[exempt]\nT01 = "todo"',
    good='[exempt]\nT01 = "proofs have many solutions; tests/test_proofs.py checks ten of them"',
    examine=examine,
)
