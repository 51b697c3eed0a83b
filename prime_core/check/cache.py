"""Outcomes of earlier checks, kept by what they depend on.

The runner asks before it runs a rule that imports or runs anything. Invariant: the key covers the
wheel, the checker's own code, Python, and the distributions beside it; what couldn't be decided is
never kept.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

from prime_core import __version__
from prime_core.check.distribution import Distribution, files_digest
from prime_core.check.rule import Exploit, Finding, Result, Rule

FOLDER = "checks"


@cache
def checker_version() -> str:
    """SHA-256 over the checker's own files: a changed rule asks again."""
    root = Path(__file__).parent
    files = [(str(path.relative_to(root)), path.read_bytes()) for path in root.rglob("*.py")]
    return files_digest(files)[:16]


def versions() -> dict[str, str]:
    """What a result depends on besides the distribution."""
    return {
        "checker": checker_version(),
        "prime-core": __version__,
        "python": platform.python_version(),
    }


def _beside() -> str:
    """The other distributions of this interpreter: a verifier may come from one of them."""
    found = {each.metadata["Name"]: each.version for each in importlib.metadata.distributions()}
    return hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()


class Cache:
    """Results of one distribution, one file a key.

    Args:
        folder: the cache directory; None keeps nothing.
        salt: limits of the check and the isolation, which results depend on too.
    """

    def __init__(self, folder: Path | None, distribution: Distribution, salt: str) -> None:
        self._path: Path | None = None
        self._known: dict[str, Result] = {}
        if folder is None or not distribution.wheel_digest:
            return
        checks = distribution.checks.model_dump_json(exclude={"exempt", "level"})
        name = distribution.wheel.name if distribution.wheel else ""  # pip reads its tags
        parts = [distribution.wheel_digest, name, *versions().values(), _beside(), checks, salt]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        self._path = folder / FOLDER / f"{key[:32]}.json"
        if self._path.is_file():
            self._known = _known(self._path)

    def get(self, rule: Rule, subject: str) -> Result | None:
        """The earlier result; None where there is none."""
        found = self._known.get(f"{rule.id} {subject}")
        return None if rule.cost == "static" else found

    def put(self, rule: Rule, subject: str, result: Result) -> None:
        """Keep a result that was decided."""
        if not result.undecided and rule.cost != "static":
            self._known[f"{rule.id} {subject}"] = result

    def save(self) -> None:
        """Write the file at once."""
        if self._path is None or not self._known:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".part")
        kept = {key: asdict(result) for key, result in self._known.items()}
        temporary.write_text(json.dumps(kept), encoding="utf-8")
        temporary.replace(self._path)


def _known(path: Path) -> dict[str, Result]:
    """The results of a file; none where it isn't whole, so that everything is asked again."""
    try:
        return {key: _read(found) for key, found in json.loads(path.read_bytes()).items()}
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return {}


def _read(found: Mapping[str, Any]) -> Result:
    findings = []
    for each in found["findings"]:
        exploit = each["exploit"]  # what is known is written again: it must stay whole
        if exploit is not None:
            exploit = Exploit(**{**exploit, "also": tuple(exploit["also"])})
        findings.append(Finding(**{**each, "exploit": exploit}))
    return Result(tuple(findings), found["measures"], found["not_applicable"], found["undecided"])
