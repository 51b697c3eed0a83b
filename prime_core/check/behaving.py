"""What rules of family K share: ask the jailed child `behaviour`, turn problems into findings."""

from __future__ import annotations

from prime_core.api import FormatError
from prime_core.check.measures import read_result
from prime_core.check.rule import Finding, Result, blocked, failed
from prime_core.check.subject import Subject
from prime_core.hosting import values


async def behaves(subject: Subject) -> Result:
    """A finding for each problem that the child saw."""
    found = await subject.lab.observation()
    assert subject.entry is not None
    if found.plugins.get(subject.entry.label, {"error": "it isn't registered"}).get("error"):
        return blocked("it can't be registered (I01)")
    result, _, ended = await subject.lab.child(
        "behaviour", subject.lab.request(subject), subject.lab.limits.start_s
    )
    try:
        problems = values.sequence(read_result(result).get("problems"), "problems", values.text)
    except FormatError as error:
        return failed(Finding(ended or error.what))
    return failed(*(Finding(each) for each in problems))
