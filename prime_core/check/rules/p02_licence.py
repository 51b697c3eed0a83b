"""P02: the licence is an SPDX expression."""

from __future__ import annotations

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

from prime_core.check.rule import Finding, Result, Rule, failed, passed
from prime_core.check.subject import Subject


def examine(subject: Subject) -> Result:
    """Read `license`, or License-Expression of a wheel."""
    found = subject.distribution
    declared = (
        found.project.get("license") if found.source else found.metadata["License-Expression"]
    )
    path = "pyproject.toml" if found.source else ""
    old = "" if found.source else str(found.metadata["License"] or "").strip()
    if not declared and old:
        shown = old.splitlines()[0][:60]
        return failed(Finding(f"{shown!r} stands in the old field License; License-Expression, "
                              "the SPDX one, is empty"))  # fmt: skip
    if not isinstance(declared, str) or not declared:
        return failed(Finding("no SPDX licence is declared", path=path, line=1))
    try:
        canonicalize_license_expression(declared)
    except InvalidLicenseExpression:
        return failed(Finding(f"{declared!r} isn't an SPDX expression", path=path, line=1))
    return passed(licence=declared)


RULE = Rule(
    id="P02",
    name="licence",
    title="The licence is declared as an SPDX expression",
    level="bronze",
    cost="static",
    why="Nobody may train on, or change, what has no licence; a free text can't be compared.",
    fix='write license = "Apache-2.0", or another SPDX expression, into [project]',
    bad='license = "free for research"',
    good='license = "Apache-2.0"',
    examine=examine,
)
