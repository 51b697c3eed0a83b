"""One part of the report: figures, and the requirements that it misses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Part:
    """A part; `skipped` says why it wasn't run."""

    name: str
    figures: dict[str, Any] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    skipped: str = ""

    def require(self, holds: bool, what: str) -> None:
        """Note a requirement that doesn't hold."""
        if not holds:
            self.failures.append(what)


def report(parts: list[Part]) -> str:
    """The parts as text."""
    lines = []
    for part in parts:
        lines.append(f"{part.name}{': skipped, ' + part.skipped if part.skipped else ''}")
        for name, value in part.figures.items():
            lines.append(
                f"  {name}: {value:.4g}" if isinstance(value, float) else f"  {name}: {value}"
            )
        lines += [f"  FAILED: {failure}" for failure in part.failures]
    return "\n".join(lines)
