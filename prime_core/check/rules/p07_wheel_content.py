"""P07: the wheel holds the distribution's module and nothing else."""

from __future__ import annotations

import re

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

SECRET = re.compile(r"(?i)(^|/)(\.env|\.netrc|\.pypirc|id_rsa|id_ed25519|.*\.(pem|key|p12))$")
LARGE = 64 << 20  # bytes; data sets belong behind a URL with a digest


def examine(subject: Subject) -> Result:
    """Look at the names of its files."""
    found = subject.distribution
    if found.site is None:
        return Result(undecided="there is no wheel (P06)")
    findings = [
        Finding(f"{name} stands at the top of the wheel beside {found.module_name}")
        for name in found.foreign_modules
    ]
    if found.in_the_way:
        findings.append(
            Finding(f"its module {found.module_name} has a name that is {found.in_the_way}",
                    fix="give the distribution another name, and its module with it")
        )  # fmt: skip
    findings += [Finding(f"refused: {each}") for each in found.wheel_refusals]
    size = 0
    for name in found.wheel_names:
        if SECRET.search(name):
            findings.append(Finding(f"{name} looks like a secret"))
        if "__pycache__" in name and not found.target_is_installed:
            findings.append(Finding(f"{name} is compiled code without its source's date"))
        path = found.site / name
        size += path.stat().st_size if path.is_file() else 0
    if size > LARGE:
        findings.append(Finding(f"it holds {size >> 20} MiB", fix="load data by URL and digest"))
    return failed(*findings, bytes=str(size))


RULE = Rule(
    id="P07",
    name="wheel-content",
    title="The wheel holds the distribution's one module, and nothing that isn't meant for others",
    level="bronze",
    cost="static",
    why="A wheel that drops `tests` or `utils` at the top breaks the next one that does; a file "
    "named sitecustomize.py runs in every Python process; a module named like another hides it.",
    fix="name the one package in [tool.hatch.build.targets.wheel]",
    bad='[tool.hatch.build.targets.wheel]\npackages = ["prime_env_words", "tests"]',
    good='[tool.hatch.build.targets.wheel]\npackages = ["prime_env_words"]',
    examine=examine,
)
