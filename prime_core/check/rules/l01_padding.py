"""L01: a completion's length changes nothing."""

from __future__ import annotations

from prime_core.check.bench import completion_of
from prime_core.check.paying import share
from prime_core.check.rule import Exploit, Finding, Result, Rule, failed
from prime_core.check.subject import Subject

TASKS = 12
FILLER = "Let me think about this again. "
LENGTHS = (1, 20, 400)  # sentences
COUNTS = (1, 64, 100_000)  # token counts that are only said


async def examine(subject: Subject) -> Result:
    """Pad completions on both sides, and say that they're longer than they are."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    findings: list[Finding] = []
    for view in views[:TASKS]:
        texts = [text for text in (view.gold, *view.wrong[:1], "0") if text]
        for text in texts:
            said = [completion_of(text, count) for count in COUNTS]
            scores = await bench.judge_completions([(view.index, one) for one in said])
            if len({(each.value, each.status) for each in scores}) > 1:
                shown = ", ".join(
                    f"{c} tokens: {s.value}" for c, s in zip(COUNTS, scores, strict=True)
                )
                first = scores[0]
                findings.append(
                    Finding(
                        f"the score depends on the token count alone: {shown}",
                        exploit=Exploit(view.index, view.id, text, first.value, first.status),
                    )
                )
        for name, padded in _paddings(view.gold, view.wrong):
            judged = await bench.judge([(view.index, each) for each in padded])
            values = [share(each.value, info) for each in judged]
            if len(set(values)) > 1:
                best = judged[max(range(3), key=values.__getitem__)]
                shown = f"{name}: {', '.join(f'{v:g}' for v in values)} for {LENGTHS} sentences"
                findings.append(Finding(shown, exploit=best.exploit(view.id)))
        if len(findings) >= 3:
            break
    return failed(*findings[:3])


def _paddings(gold: str | None, wrong: tuple[str, ...]) -> list[tuple[str, list[str]]]:
    found = []
    for name, text in (("gold", gold), ("a wrong completion", wrong[0] if wrong else "0")):
        if text is None:
            continue
        found.append((f"filler before {name}", [f"{FILLER * n}\n{text}" for n in LENGTHS]))
        found.append((f"filler behind {name}", [f"{text}\n{FILLER * n}" for n in LENGTHS]))
    return found


RULE = Rule(
    id="L01",
    name="padding",
    title="The length of a completion changes nothing in its score",
    level="silver",
    cost="run",
    why="A score that grows with length is learnt faster than the task. Length belongs into the "
    "reward function's own, named term.",
    fix="judge the answer; leave length to a reward function with a length part",
    bad="return Score(right * min(1.0, completion.token_count / 1000))",
    good="return Score(right)",
    kinds=("environment", "verifier"),
    examine=examine,
)
