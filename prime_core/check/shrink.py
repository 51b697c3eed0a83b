"""The smallest completion that still shows a finding: delta debugging on its characters.

The runner calls it with `--shrink`, when all rules have run: a completion that hangs costs hosts.
Invariant: what it gives back did, when it was scored, what the finding says. Source: Zeller and
Hildebrandt, IEEE TSE 28 (2002).
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import replace

from prime_core.check.bench import LOSSES, Bench, Judged
from prime_core.check.rule import Exploit, Finding, Result, Rule
from prime_core.check.subject import Blocked, Subject

TRIES = 400  # completions scored for one finding
BATCH = 16

Holds = Callable[[list[str]], Awaitable[list[bool]]]


def shrinks(rule: Rule) -> bool:
    """Whether a smaller completion says the same: one that is paid by mistake, or breaks the
    verifier. Of gold that is refused, and of wrong answers that are near gold, it doesn't."""
    return rule.id[0] in "HR" or rule.id in ("T02", "T03")


async def shrunk(result: Result, subject: Subject) -> Result:
    """The result with every exploit shrunk."""
    if not any(finding.exploit for finding in result.findings):
        return result
    bench = await subject.lab.bench(subject)
    findings = [await _finding(each, bench) for each in result.findings]
    return replace(result, findings=tuple(findings))


async def _finding(finding: Finding, bench: Bench) -> Finding:
    exploit = finding.exploit
    if exploit is None or not exploit.text:
        return finding
    indices = [exploit.index, *exploit.also]
    known: dict[str, Judged] = {}
    smallest = exploit.text
    bench.forgive()

    async def holds(texts: list[str]) -> list[bool]:
        nonlocal smallest
        judged = await bench.judge([(index, text) for text in texts for index in indices])
        size = len(indices)
        known.update({text: judged[n * size] for n, text in enumerate(texts)})
        found = [
            all(same(each, exploit) for each in judged[n * size : (n + 1) * size])
            for n in range(len(texts))
        ]
        good = [text for text, does in zip(texts, found, strict=True) if does]
        smallest = min([smallest, *good], key=len)
        return found

    # One at a time where each costs a host, so that what was found is known when it's given up.
    batch = 1 if exploit.detail.partition(":")[0] in LOSSES else BATCH
    with contextlib.suppress(Blocked):
        if (await holds([exploit.text]))[0]:
            await minimal(exploit.text, holds, batch)
        # else it depends on more than the text; the rule of determinism says so
    if smallest == exploit.text:
        return finding
    smaller = known[smallest].exploit(exploit.task, also=exploit.also)
    return replace(finding, exploit=smaller)


def same(judged: Judged, exploit: Exploit) -> bool:
    """The score says the same: as much paid, or the same sort of error."""
    if judged.score.status != exploit.status:
        return False
    if exploit.value is None:
        kind = str(judged.score.evidence.get("kind", ""))
        return exploit.detail.startswith(kind)
    if judged.score.value is None:
        return False
    return judged.score.value >= exploit.value


async def minimal(text: str, holds: Holds, size_of_batch: int = BATCH) -> str:
    """ddmin: a text from which no chunk of any size can be left out, within `TRIES` tries."""
    tries, parts = 0, 2
    while len(text) >= 1 and tries < TRIES:
        size = max(1, len(text) // parts)
        starts = list(range(0, len(text), size))
        candidates = [text[:at] + text[at + size :] for at in starts]
        found = None
        for at in range(0, len(candidates), size_of_batch):
            batch = candidates[at : at + size_of_batch]
            tries += len(batch)
            verdicts = await holds(batch)
            found = next((each for each, good in zip(batch, verdicts, strict=True) if good), None)
            if found is not None or tries >= TRIES:
                break
        if found is not None:
            text, parts = found, max(2, parts - 1)
        elif size == 1:
            return text
        else:
            parts = min(len(text), parts * 2)
    return text
