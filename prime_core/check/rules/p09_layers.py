"""P09: of prime-core, only its API is imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from prime_core.check.distribution import read_source
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject

ALLOWED = ("prime_core.api", "prime_core.testing")


def examine(subject: Subject) -> Result:
    """Read the imports of every Python file of the module; nothing is imported."""
    found = subject.distribution
    if found.name == "prime-core":
        return Result(not_applicable="prime-core itself")
    root = found.source or found.site
    findings = []
    files = found.python_files()
    for file in files:
        relative = str(file.relative_to(root)) if root else file.name
        try:
            tree = ast.parse(read_source(file))
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", 1) or 1
            findings.append(
                Finding(f"{relative} can't be parsed: {error}", path=relative, line=line)
            )
            continue
        findings += _deep_imports(tree, relative)
    return failed(*findings, files=str(len(files)))


def _deep_imports(tree: ast.Module, path: str) -> Iterator[Finding]:
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [each.name for each in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [node.module]
            if node.module == "prime_core":
                names = [f"prime_core.{each.name}" for each in node.names]
        for name in names:
            line = getattr(node, "lineno", 0)
            if name.partition(".")[0] == "prime_core" and not name.startswith(ALLOWED):
                yield Finding(f"it imports {name}", path=path, line=line)


RULE = Rule(
    id="P09",
    name="layers",
    title="Of prime-core, only prime_core.api is imported (and prime_core.testing by tests)",
    level="bronze",
    cost="static",
    why="Everything deeper changes without notice.",
    fix="import from prime_core.api; ask for what is missing there",
    bad="from prime_core.hosting.pool import HostPool",
    good="from prime_core.api import Completion, Score, Task",
    examine=examine,
)
