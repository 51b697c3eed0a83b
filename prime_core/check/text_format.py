"""A report for people, and the parts of a finding that every format shows.

`prime_core.check.formats` chooses it. Invariant: nothing that a package or a completion says
reaches the terminal as control characters.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from prime_core.check.outcome import Outcome, Report
from prime_core.check.rule import Exploit, Finding

SHOWN = 200  # characters of a completion
MARKS = {
    "passed": "ok", "failed": "FAIL", "warned": "warn", "exempt": "exempt", "not applicable": "n/a",
    "undecided": "?",
}  # fmt: skip


def printable(text: str, most: int = SHOWN) -> str:
    """A text as Python would write it, cut in the middle."""
    shown = text if len(text) <= most else f"{text[: most // 2]} ... {text[-most // 2 :]}"
    return ascii(shown) if not shown.isascii() or not shown.isprintable() else repr(shown)


def clean(text: str) -> str:
    """One line without control characters."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def visible(text: str) -> str:
    """The text with line ends, and without any other control character."""
    return "".join(c if c.isprintable() or c == "\n" else " " for c in text)


def expression(exploit: Exploit) -> str:
    """A Python expression that gives the completion."""
    return exploit.recipe or ascii(exploit.text)


def command(exploit: Exploit, words: list[str], kind: str) -> str:
    """The command that scores the completion again; "" where it would be too long to paste."""
    source = expression(exploit)
    if len(source) > 4000 or kind != "environment":
        return ""
    code = f"import sys; sys.stdout.write({source})"
    encoding = "PYTHONIOENCODING=utf-8:surrogatepass "
    prefix = encoding if not source.isascii() or "\\u" in source else ""
    scored = ["prime-core", "score", *words, "--index", str(exploit.index), "--completion", "-"]
    return f"{prefix}python -c {shlex.quote(code)} | {prefix}{shlex.join(scored)}"


def score_text(exploit: Exploit) -> str:
    """The score, in words."""
    value = "no value" if exploit.value is None else f"{exploit.value:g}"
    detail = f", {clean(exploit.detail)[:200]}" if exploit.detail else ""
    return f"{value} ({exploit.status}{detail})"


def reproduce(report: Report, outcome: Outcome, finding: Finding) -> str:
    """The command for a finding; "" where it has no completion."""
    if finding.exploit is None:
        return ""
    words = list(report.environments.get(outcome.subject, [outcome.subject]))
    if finding.exploit.detail.startswith("timeout"):
        words += ["--time-limit", f"{report.item_s:g}"]
    return command(finding.exploit, words, outcome.subject.partition(".")[0])


def as_text(report: Report, *, verbose: bool = False) -> str:
    """The report for a terminal; `verbose` lists rules that passed, too."""
    lines = [f"{clean(report.name)} {clean(report.version)}, isolation {report.isolation}"]
    blind: dict[str, list[str]] = {}
    for outcome in report.outcomes:
        if outcome.status == "undecided":
            blind.setdefault(clean(outcome.reason), []).append(outcome.rule.id)
        elif verbose or outcome.status not in ("passed", "not applicable"):
            lines += _outcome(report, outcome)
    for reason, ids in blind.items():
        lines += [f"?      {', '.join(ids)}", f"         undecided: {reason}"]
    counts = report.counts
    said = ", ".join(f"{counts[each]} {each}" for each in MARKS if counts[each])
    lines.append(f"\n{said}; level reached: {report.reached} (asked: {report.asked})")
    if report.claimed and report.claimed != report.reached:
        lines.append(f"checks.toml claims {report.claimed}")
    return visible("\n".join(lines))


def _outcome(report: Report, outcome: Outcome) -> Iterator[str]:
    rule = outcome.rule
    mark = MARKS[outcome.status]
    yield f"{mark:<6} {rule.id} {rule.name} ({rule.level}) {clean(outcome.subject)}"
    if outcome.status in ("passed",) and outcome.measures:
        measures = "; ".join(f"{key} {value}" for key, value in outcome.measures.items())
        yield f"         {clean(measures)}"
    if outcome.reason:
        yield f"         {outcome.status}: {clean(outcome.reason)}"
    for finding in outcome.findings:
        place = f"{clean(finding.path)}:{finding.line}: " if finding.path else ""
        yield f"         {place}{clean(finding.seen)}"
        if finding.exploit is not None:
            exploit = finding.exploit
            task = f" {clean(exploit.task)}" if exploit.task else ""
            said = printable(exploit.text)
            yield f"           task {exploit.index}{task}, completion {said}"
            yield f"           score {score_text(exploit)}"
            again = reproduce(report, outcome, finding)
            if again:
                yield f"           again: {again}"
        yield f"           fix: {clean(finding.fix or rule.fix)}"
    if outcome.findings:
        yield f"         more: prime-core check --explain {rule.id}"
