"""Evidence files of level gold: sealed JSON that says what was measured, and on which tasks.

`prime_core.check.proving` writes them, rules U01 to U03 read them. Invariant: a file whose content
doesn't match its digest, or that is of other tasks, proves nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from prime_core.api import FormatError
from prime_core.check.plain_files import read_plain
from prime_core.check.rule import Finding, Result, failed, nothing_to_see
from prime_core.check.subject import Subject
from prime_core.hosting import values

SCHEMA = "prime-core/evidence/1"
LIMIT = 64 << 20  # bytes
Kind = Literal["profile", "training", "replay"]


def seal(kind: Kind, plugin: str, dataset_digest: str, body: Mapping[str, Any]) -> str:
    """The text of an evidence file."""
    content = {"schema": SCHEMA, "kind": kind, "plugin": plugin, "dataset_digest": dataset_digest}
    content |= dict(body)
    content["sha256"] = _digest(content)
    return json.dumps(content, indent=1, sort_keys=True) + "\n"


def _digest(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def read(path: Path, kind: Kind) -> dict[str, Any]:
    """The content of an evidence file.

    Raises:
        FormatError: it isn't one of this kind, or was changed after it was sealed.
    """
    try:
        content = values.mapping(json.loads(read_plain(path, LIMIT)), "evidence")
    except (OSError, ValueError, RecursionError) as error:
        raise FormatError(f"it can't be read: {error}") from error
    said = content.pop("sha256", None)
    if said != _digest(content):
        raise FormatError("its content doesn't match its sha256; it was changed by hand")
    if (content.get("schema"), content.get("kind")) != (SCHEMA, kind):
        raise FormatError(f"it is not evidence of kind {kind}")
    return content


async def evidence(subject: Subject, kind: Kind) -> dict[str, Any] | Result:
    """The subject's evidence, or the result that there is none that counts."""
    named = getattr(subject.distribution.checks.evidence, kind)
    source = subject.distribution.source
    if source is None:
        return nothing_to_see("evidence stands in the source")
    if subject.number:
        return nothing_to_see("evidence is asked of the first case")
    if not named:
        return failed(Finding(f"checks.toml names no evidence of kind {kind}", path="checks.toml",
                              line=1))  # fmt: skip
    try:
        content = read(source / named, kind)
    except FormatError as error:
        return failed(Finding(f"{named}: {error.what}", path=named, line=1))
    listing = await subject.lab.ready(subject)
    assert subject.entry is not None
    assert listing.info is not None
    if content.get("plugin") != subject.entry.label:
        return failed(Finding(f"{named} is of {content.get('plugin')}", path=named, line=1))
    if content.get("dataset_digest") != listing.info.dataset_digest:
        return failed(Finding(
            f"{named} was measured on tasks of digest {str(content.get('dataset_digest'))[:16]}, "
            f"now it is {listing.info.dataset_digest[:16]}", path=named, line=1))  # fmt: skip
    return content


def numbers(value: object, what: str) -> list[float]:
    """A list of numbers.

    Raises:
        FormatError: it isn't one.
    """
    return list(values.sequence(value, what, values.number))


def rises(values: Sequence[float]) -> tuple[float, float]:
    """(last quarter minus first quarter, three standard errors of that)."""
    size = max(1, len(values) // 4)
    first, last = values[:size], values[-size:]
    means = [sum(part) / size for part in (first, last)]
    spread = sum(
        sum((each - mean) ** 2 for each in part) / max(1, size - 1)
        for part, mean in zip((first, last), means, strict=True)
    )
    return means[1] - means[0], 3 * (spread / size) ** 0.5
