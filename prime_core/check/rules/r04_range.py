"""R04: every score is a finite value of the declared range."""

from __future__ import annotations

from prime_core.check.rule import Finding, Result, Rule, failed
from prime_core.check.subject import Subject
from prime_core.check.typed import hostile, kind


async def examine(subject: Subject) -> Result:
    """Look at values and statuses of gold, wrong and pathological completions."""
    listing, views, bench = await subject.lab.sample(subject)
    info = listing.info
    assert info is not None
    texts = [(view, text) for view in views[:16] for text in (view.gold or "", *view.wrong[:2])]
    judged = await bench.judge([(view.index, text) for view, text in texts])
    ids = {view.index: view.id for view in views}
    found = await hostile(subject)
    every = [*judged, *(one for _, one, _ in found.judged)]
    findings = []
    for one in every:
        score = one.score
        if kind(one) == "value":
            said = "the verifier's answer is no score of the declared range"
        elif score.status == "invalid_output" and score.value != info.score_range[0]:
            said = f"an invalid output is worth {score.value}, not the lowest value"
        else:
            continue
        findings.append(Finding(said, exploit=one.exploit(ids.get(one.index, ""))))
    measures = {"scores": str(len(every))}
    if found.left:  # R01 and R02 say why; what was scored is in range or isn't, all the same
        measures["not scored, hosts were lost"] = str(found.left)
    return failed(*findings[:3], **measures)


RULE = Rule(
    id="R04",
    name="range",
    title="Every score is a finite value of the declared range",
    level="bronze",
    cost="run",
    why="Frameworks have let NaN and 1e9 through to the optimizer.",
    fix="declare score_range, and return Score(value) with a value inside it",
    bad="return Score(10.0)   # score_range is (0, 1)",
    good="return Score(min(1.0, similarity))",
    kinds=("environment", "verifier"),
    examine=examine,
)
