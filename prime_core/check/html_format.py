"""A report as one HTML page, without scripts and without anything to be fetched.

`prime_core.check.formats` uses it. Invariant: every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from prime_core.check.outcome import Outcome, Report
from prime_core.check.text_format import clean, printable, reproduce, score_text

STYLE = """
:root { color-scheme: light dark; --line: #8884; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; } table { border-collapse: collapse; width: 100%; }
td, th { border-bottom: 1px solid var(--line); padding: .3rem .5rem; text-align: left;
  vertical-align: top; overflow-wrap: anywhere; }
code { font-size: .85em; overflow-wrap: anywhere; white-space: pre-wrap; }
.failed { color: #c22; } .warned, .undecided { color: #b60; } .passed { color: #282; }
td:nth-child(-n+3) { overflow-wrap: normal; white-space: nowrap; }
details { margin: .2rem 0; } .quiet { opacity: .7; }
@media (max-width: 45rem) {
  thead { display: none; } table, tbody, tr, td { display: block; width: auto; }
  tr { border-bottom: 1px solid var(--line); padding: .4rem 0; } td { border: 0; padding: 0; }
  td:nth-child(-n+3) { display: inline-block; padding-right: .6rem; white-space: normal; } }
@media (prefers-color-scheme: dark) {
  .failed { color: #f77; } .warned, .undecided { color: #fb5; } .passed { color: #7c7; } }
"""


def as_html(report: Report) -> str:
    """The whole page."""
    counts = ", ".join(f"{number} {status}" for status, number in report.counts.items())
    title = clean(f"{report.name} {report.version}")
    rows = "\n".join(_row(report, outcome) for outcome in report.outcomes)
    versions = ", ".join(f"{name} {value}" for name, value in report.versions.items())
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}: {escape(report.reached)}</title><style>{STYLE}</style></head><body>
<h1>{escape(title)}: level {escape(report.reached)}</h1>
<p>{escape(counts)}; asked: {escape(report.asked)}.</p>
<table><thead><tr><th>rule</th><th>level</th><th>subject</th><th>says</th></tr></thead><tbody>
{rows}
</tbody></table>
<p class="quiet">Isolation {escape(report.isolation)}. {escape(versions)}. Wheel
<code>{escape(report.wheel_digest)}</code></p>
</body></html>"""


def _row(report: Report, outcome: Outcome) -> str:
    rule = outcome.rule
    said = [f'<span class="{escape(outcome.status)}">{escape(outcome.status)}</span>']
    if outcome.reason:
        said.append(escape(clean(outcome.reason)))
    said += [escape(f"{name} {value}") for name, value in outcome.measures.items()]
    body = "; ".join(said) + "".join(_findings(report, outcome))
    return (
        f"<tr><td title='{escape(rule.title)}'>{rule.id} {escape(rule.name)}</td>"
        f"<td>{rule.level}</td><td>{escape(outcome.subject)}</td><td>{body}</td></tr>"
    )


def _findings(report: Report, outcome: Outcome) -> Iterator[str]:
    for finding in outcome.findings:
        parts = [f"<p>Fix: {escape(finding.fix or outcome.rule.fix)}</p>"]
        if finding.exploit is not None:
            exploit = finding.exploit
            parts.insert(
                0,
                f"<p>Task {exploit.index} {escape(clean(exploit.task))}, completion "
                f"<code>{escape(printable(exploit.text, 1000))}</code>, "
                f"score {escape(score_text(exploit))}</p>",
            )
            again = reproduce(report, outcome, finding)
            if again:
                parts.append(f"<p><code>{escape(again)}</code></p>")
        yield (
            f"<details open><summary>{escape(clean(finding.seen))}</summary>{''.join(parts)}"
            "</details>"
        )
