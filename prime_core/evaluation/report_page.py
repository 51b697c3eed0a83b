"""A report as one HTML page: no scripts, nothing fetched, readable on a phone and in the dark.

Made by `report_files`. Invariant: every text is escaped, and what can't be shown is replaced.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from prime_core.evaluation.judged import Judged
from prime_core.evaluation.passing import Estimate
from prime_core.evaluation.report_style import STYLE
from prime_core.evaluation.summary import Summary

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
TASK_ROWS = 1000  # of the table; a browser gets slow far above, and tasks.parquet has them all
TEXT = 4000  # characters of an example
EVIDENCE = 1500


def as_html(
    title: str,
    lead: str,
    settings: Mapping[str, Any],
    summary: Summary,
    score_range: tuple[float, float],
    notes: Sequence[str],
) -> bytes:
    """The whole page.

    Args:
        title: what was done, of what.
        lead: one sentence below it.
        settings: what the numbers depend on, shown at the end.
        notes: what a reader must know before believing a number.
    """
    body = "\n".join(
        [
            f"<h1>{_text(title)}</h1><p class='lead'>{_text(lead)}</p>",
            *(f"<p class='note'>{_text(note)}</p>" for note in notes),
            _tiles(summary),
            _passing(summary),
            _values(summary, score_range),
            _errors(summary),
            _lengths(summary),
            _tasks(summary),
            _examples(summary),
            _settings(settings),
        ]
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="color-scheme" content="light dark">
<title>{_text(title)}</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body><main>
{body}
</main></body>
</html>
""".encode()


def _tiles(summary: Summary) -> str:
    tiles = [
        ("mean score", _number(summary.mean.mean), _interval(summary.mean)),
        ("completions", f"{summary.completions:,}", f"of {len(summary.tasks):,} tasks"),
    ]
    first = summary.passing.get(1)
    if first is not None:
        tiles.insert(1, ("pass@1", _percent(first.mean), _interval(first, percent=True)))
    without = summary.statuses.get("error", 0) + summary.statuses.get("abstained", 0)
    tiles.append(("without a value", f"{without:,}", "abstained or error; in no mean"))
    if summary.left:
        tiles.append(("given up", f"{sum(summary.left.values()):,}", "run again to retry"))
    if summary.prompt_tokens or summary.cost:
        tokens = f"{summary.prompt_tokens:,} in, {summary.tokens:,} out"
        cost = f"{summary.cost:.4f}" if summary.cost else "no price given"
        tiles.append(("cost", cost, f"tokens: {tokens}"))
    cells = "".join(
        f"<div class='tile'><div class='name'>{_text(name)}</div><div class='big'>{_text(value)}"
        f"</div><div class='small'>{_text(small)}</div></div>"
        for name, value, small in tiles
    )
    return f"<div class='tiles'>{cells}</div>"


def _passing(summary: Summary) -> str:
    if not summary.passing:
        return ""
    rows = []
    for k, one in summary.passing.items():
        mean = 0.0 if one.mean is None else one.mean
        width = max(0.3, 100 * (one.high - one.low))
        rows.append(
            f"<div class='row'><span class='label'>pass@{k}</span><span class='track'>"
            f"<span class='band' style='left:{100 * one.low:.2f}%;width:{width:.2f}%'></span>"
            f"<span class='mark' style='left:{100 * mean:.2f}%'></span></span>"
            f"<span class='said'>{_percent(one.mean)} <small>{_interval(one, percent=True)}, "
            f"{one.tasks:,} tasks</small></span></div>"
        )
    return (
        "<h2>pass@k</h2><p>The chance that one of k completions passes "
        f"(a score of at least {summary.pass_mark:g}), averaged over tasks. Mark: unbiased "
        "estimate; band: 95 % interval.</p>"
        f"<div class='rows estimates'>{''.join(rows)}</div>"
    )


def _values(summary: Summary, score_range: tuple[float, float]) -> str:
    most = max((count for _, count in summary.histogram), default=0) or 1
    ends = [low for low, _ in summary.histogram[1:]] + [score_range[1]]
    bars = "".join(
        _bar(f"{low:.3g} to {end:.3g}", count, most)
        for (low, count), end in zip(summary.histogram, ends, strict=True)
    )
    statuses = "".join(_bar(name, count, summary.completions or 1)
                       for name, count in summary.statuses.items())  # fmt: skip
    return (
        f"<h2>Scores</h2><div class='two'><div><h3>by value</h3><div class='rows'>{bars}</div>"
        f"</div><div><h3>by status</h3><div class='rows'>{statuses}</div></div></div>"
    )


def _bar(label: str, count: int, most: int) -> str:
    width = max(0.6, 100 * count / most) if count else 0
    return (
        f"<div class='row'><span class='label'>{_text(label)}</span><span class='track'>"
        f"<span class='fill' style='width:{width:.2f}%'></span></span>"
        f"<span class='said'>{count:,}</span></div>"
    )


def _errors(summary: Summary) -> str:
    rows = [[_text(what), f"{count:,}"] for what, count in summary.errors[:50]]
    rows += [[f"given up: {_text(why)}", f"{count:,}"] for why, count in summary.left.items()]
    if not rows:
        return ""
    return f"<h2>What has no value, and why</h2>{_table(('reason', 'completions'), rows, 'wide')}"


def _lengths(summary: Summary) -> str:
    found = summary.lengths
    if found is None:
        return ""
    names = ("shortest", "10 %", "median", "90 %", "longest")
    rows = [["mean", f"{found.mean:,.1f}"]]
    rows += [[name, f"{value:,}"] for name, value in zip(names, found.quantiles, strict=True)]
    rows.append(["at the token limit", _percent(found.truncated)])
    budget = summary.budget
    if budget is not None:
        rows += [
            ["asked for", f"{budget.target:,}"],
            ["mean distance from it", f"{budget.mean_error:,.1f}"],
            ["within a tenth of it", _percent(budget.within_tenth)],
        ]
    return f"<h2>Tokens of a completion</h2>{_table(('', 'tokens'), rows)}"


def _tasks(summary: Summary) -> str:
    head = ("task", "scored", "passes", "pass@1", "mean", "tokens", "cut off")
    rows = [
        [
            f"<code>{_text(line.task)}</code>",
            f"{line.scored} of {line.completions}",
            str(line.passes),
            _percent(line.passes / line.scored) if line.scored else "-",
            _number(line.mean),
            f"{line.tokens:,}",
            str(line.truncated),
        ]
        for line in summary.tasks[:TASK_ROWS]
    ]
    rest = len(summary.tasks) - len(rows)
    more = f"<p>{rest:,} more tasks stand in tasks.parquet.</p>" if rest else ""
    return f"<h2>Tasks</h2>{_table(head, rows, 'tall')}{more}"


def _examples(summary: Summary) -> str:
    parts = [
        f"<details><summary>{_text(kind)}: {len(shown)} shown</summary>"
        f"{''.join(_example(one) for one in shown)}</details>"
        for kind, shown in summary.examples.items()
    ]
    return f"<h2>Examples</h2>{''.join(parts)}" if parts else ""


def _example(one: Judged) -> str:
    evidence = json.dumps(dict(one.score.evidence), indent=1, ensure_ascii=False)
    said = "\n".join(f"[{m.role}] {m.content}" for m in one.messages) or one.text
    return (
        f"<div class='example'><p><code>{_text(one.task)}</code>, completion {one.sample}: "
        f"<strong>{_number(one.score.value)}</strong> ({_text(one.score.status)})</p>"
        f"<pre tabindex='0'>{_cut(said, TEXT) or '<em>(nothing)</em>'}</pre>"
        f"<pre tabindex='0' class='quiet'>{_cut(evidence, EVIDENCE)}</pre></div>"
    )


def _settings(settings: Mapping[str, Any]) -> str:
    text = json.dumps(dict(settings), indent=2, ensure_ascii=False)
    return (
        "<h2>What the numbers depend on</h2><details><summary>Settings</summary>"
        f"<pre tabindex='0'>{_text(text)}</pre></details>"
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], kind: str = "") -> str:
    """A table that scrolls inside itself; cells are HTML."""
    top = "".join(f"<th scope='col'>{_text(name)}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f"<div class='scroll {kind}' tabindex='0'><table><thead><tr>{top}</tr></thead>"
        f"<tbody>{body}</tbody></table></div>"
    )


def _cut(text: str, most: int) -> str:
    """The text, or its beginning and its end where it's longer."""
    if len(text) <= most:
        return _text(text)
    half = most // 2
    left = len(text) - 2 * half
    return f"{_text(text[:half])}<em> … {left:,} characters … </em>{_text(text[-half:])}"


def _text(text: str) -> str:
    return escape("".join(_shown(text)))


def _shown(text: str) -> Iterator[str]:
    """Lone surrogates and control characters aren't HTML."""
    for character in text:
        bad = (character < " " and character not in "\t\n") or "\ud800" <= character <= "\udfff"
        yield "�" if bad or character == "\x7f" else character


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _interval(one: Estimate, *, percent: bool = False) -> str:
    if percent:
        return f"{100 * one.low:.1f} to {100 * one.high:.1f} %"
    return f"{one.low:.3g} to {one.high:.3g}"
