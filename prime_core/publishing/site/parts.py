"""Pieces of HTML that every page of the catalogue shares. Every text is escaped here.

A page asks nothing of other servers: its policy allows its own style sheet and script alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'"
)


def page(title: str, root: str, body: str) -> bytes:
    """A whole page; `root` leads from it to the index's root, e.g. "../../"."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="{root}assets/site.css">
<script src="{root}assets/site.js" defer></script>
</head>
<body>
<header class="top"><a class="home" href="{root}index.html">prime-core index</a></header>
<main>
{body}
</main>
<footer>Every record behind this page is signed. <code>prime-core install</code> verifies it;
a page alone proves nothing.</footer>
</body>
</html>
""".encode()


def badge(text: str, kind: str = "") -> str:
    """A small label; `kind` is a class of the style sheet."""
    return f'<span class="badge {escape(kind)}">{escape(text)}</span>'


def level_badge(level: str) -> str:
    """The level that a version was checked at."""
    return badge("unchecked" if level == "none" else level, level)


def code(text: str) -> str:
    """A block of code that scrolls inside itself."""
    return f'<pre tabindex="0"><code>{escape(text)}</code></pre>'


def said(text: str) -> str:
    """What somebody said, with its line breaks; an empty text shows as such."""
    return f'<div class="said">{escape(text) or "<em>(nothing)</em>"}</div>'


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table that scrolls sideways on a phone; cells are HTML already."""
    top = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{top}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def bars(rows: Sequence[tuple[str, int]]) -> str:
    """Counts as horizontal bars, each with its label and number in text."""
    most = max((count for _, count in rows), default=0) or 1
    lines = []
    for label, count in rows:
        width = max(1, round(100 * count / most)) if count else 0
        lines.append(
            f'<div class="bar"><span class="label">{escape(label)}</span>'
            '<svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
            f'<rect class="track" width="100" height="10"/><rect width="{width}" height="10"/>'
            f'</svg><span class="count">{count}</span></div>'
        )
    return f'<div class="bars">{"".join(lines)}</div>'


def fold(summary: str, body: str, *, open_: bool = False) -> str:
    """A part that opens on a click; `summary` is text."""
    state = " open" if open_ else ""
    return f"<details{state}><summary>{escape(summary)}</summary>{body}</details>"


def short(address: str) -> str:
    """An address or digest, shortened for the eye, whole in its title."""
    head = 10 if address.startswith("0x") else 12
    return f'<code title="{escape(address)}">{escape(address[:head])}…</code>'


def number(value: float | None) -> str:
    """A score as people write it."""
    return "no value" if value is None else f"{value:g}"
