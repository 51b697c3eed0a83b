"""U03: stored scores are given again, bit for bit."""

from __future__ import annotations

from prime_core.api import FormatError
from prime_core.check.evidence import evidence
from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject
from prime_core.hosting import values

SHOWN = 3


async def examine(subject: Subject) -> Result:
    """Score the stored completions again and compare statuses and the bits of values."""
    found = await evidence(subject, "replay")
    if isinstance(found, Result):
        return found
    try:
        stored = [
            (values.whole(index, "index"), values.text(text, "text"), status, value)
            for index, text, status, value in found["scores"]
        ]
    except (FormatError, KeyError, TypeError, ValueError) as error:
        return failed(Finding(f"the stored scores can't be read: {error}"))
    bench = await subject.lab.bench(subject)
    judged = await bench.judge([(index, text) for index, text, _, _ in stored])
    findings = []
    for (_, _, status, value), one in zip(stored, judged, strict=True):
        now = None if one.score.value is None else one.score.value.hex()
        if (one.score.status, now) != (status, value):
            findings.append(Finding(f"it was stored with {value} ({status})",
                                    exploit=one.exploit("")))  # fmt: skip
    return failed(*findings[:SHOWN], scores=str(len(stored)))


RULE = Rule(
    id="U03",
    name="replay",
    title="Stored scores are given again, bit for bit",
    level="gold",
    cost="train",
    why="A validator recomputes rewards on another machine; a score that differs there is fraud or "
    "a mistake, and nobody can tell which.",
    fix="run `prime-core check PATH --prove replay`; if scores really changed, raise the version",
    bad="[evidence]\n# no replay",
    good='[evidence]\nreplay = "evidence/replay.json"',
    kinds=("environment",),
    examine=examine,
)
