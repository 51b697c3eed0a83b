"""P04: entry points are named <kind>.<name> and name the distribution's own module."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject
from prime_core.hub.kinds import KINDS


def examine(subject: Subject) -> Result:
    """Hold each entry point against the table of kinds."""
    found = subject.distribution
    path = "pyproject.toml" if found.source else ""
    if not found.entries:
        others = ", ".join(found.entry_groups)
        said = f"; it has {others}, which prime-core doesn't read" if others else ""
        return failed(Finding(f"no entry point of group prime_core{said}", path=path, line=1))
    findings = []
    for entry in found.entries:
        if entry.kind not in KINDS or not entry.name:
            findings.append(
                Finding(f"{entry.label!r} isn't named <kind>.<name>", path=path, line=1,
                        fix=f"name it one of {', '.join(f'{kind}.NAME' for kind in KINDS)}")
            )  # fmt: skip
        top = entry.module.partition(".")[0]
        if ":" in entry.module or top != found.module_name:
            findings.append(
                Finding(f"{entry.label} names {entry.module!r}, not one in {found.module_name}",
                        path=path, line=1)
            )  # fmt: skip
    return failed(*findings, plugins=", ".join(entry.label for entry in found.entries))


RULE = Rule(
    id="P04",
    name="entry-points",
    title="Entry points are named <kind>.<name> and name the distribution's own module",
    level="bronze",
    cost="static",
    why="Plugins are listed from this name alone, before anything is imported.",
    fix="let [project.entry-points.prime_core] name the distribution's own module",
    bad='[project.entry-points.prime_core]\nwords = "prime_env_words:make"',
    good='[project.entry-points.prime_core]\n"environment.words" = "prime_env_words"',
    examine=examine,
)
