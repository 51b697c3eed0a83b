"""The page of one project: how to use it, what it looks like, what the check saw, all versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from prime_core.hub.describe import select_text
from prime_core.publishing.publication import Publication
from prime_core.publishing.site.catalogue import newest
from prime_core.publishing.site.check import check_part
from prime_core.publishing.site.environment import environment_part, profile_part
from prime_core.publishing.site.parts import badge, code, fold, level_badge, page, short, table
from prime_core.publishing.source import Release

Shown = tuple[Mapping[str, Any], Mapping[str, Any]]  # card, report


def project_page(name: str, releases: Sequence[Release], shown: Mapping[str, Shown]) -> bytes:
    """The page; `shown` holds card and report by version key, {} where they can't be read."""
    release = newest(releases)
    said = release.record.value
    card, report = shown.get(release.key, ({}, {}))
    level = said.check.level
    parts = [
        f'<h1>{escape(name)} <span class="version">{escape(said.version)}</span></h1>',
        f'<p class="summary">{escape(said.summary)}</p>',
        f'<p class="badges">{level_badge(level)}'
        f"{badge(said.licence or 'no licence', 'plain')}</p>",
        _yanked(release),
        "<section><h2>Use it</h2>",
        code(f"prime-core install {name}=={said.version} --from URL-OF-THIS-INDEX \\\n"
             f"  --publisher {release.record.signer}"),
        "<p>In a run config:</p>",
        code(run_config(said, release.record.signer)),
        "</section>",
    ]  # fmt: skip
    parts += [environment_part(each) for each in card.get("environments", [])]
    parts.append(profile_part(card.get("profile")))
    parts.append(check_part(said.check, report))
    parts.append(f"<section><h2>Versions</h2>{_versions(releases)}</section>")
    parts.append(_digests(release))
    readme = str(card.get("readme", "")).strip()
    if readme:
        parts.append(f"<section><h2>Read me</h2>{fold('Show', code(readme))}</section>")
    return page(f"{name}, prime-core index", "../../", "\n".join(part for part in parts if part))


def run_config(said: Publication, publisher: str) -> str:
    """The lines that select every plugin of a version, and demand the proof of it."""
    blocks = []
    for plugin in said.plugins:
        try:
            blocks.append(f"{select_text(plugin.kind, plugin.name)}")
        except KeyError:
            continue  # a kind of a later prime-core
    level = said.check.level
    demand = ["[plugins]", f'publishers = ["{publisher}"]']
    demand += [f'min_level = "{level}"'] if level != "none" else []
    return "\n\n".join([*blocks, "\n".join(demand)])


def _yanked(release: Release) -> str:
    if release.yanked is None:
        return ""
    return f'<p class="warning">This version is yanked: {escape(release.yanked)}</p>'


def _versions(releases: Sequence[Release]) -> str:
    rows = []
    for release in releases:
        said = release.record.value
        day = datetime.fromtimestamp(said.published_at, UTC).date().isoformat()
        state = ""
        if release.yanked is not None:
            state = f"{badge('yanked', 'yanked')} {escape(release.yanked)}"
        wheel = f"../../files/{said.sha256}/{said.filename}"
        rows.append(
            (
                f'<a href="{escape(wheel)}">{escape(said.version)}</a> {state}',
                level_badge(said.check.level),
                day,
                short(release.record.signer),
                short(said.sha256),
            )
        )
    return table(("Version", "Level", "Published", "Publisher", "Wheel SHA-256"), rows)


def _digests(release: Release) -> str:
    """What the signature covers, whole, for whoever compares by eye."""
    said = release.record.value
    lines = [
        ("wheel", said.sha256),
        ("reward source", said.source_sha256),
        *((f"data set of {each.environment}", each.sha256) for each in said.datasets),
        ("check report", said.report_sha256),
        ("record", release.record.sha256),
        ("publisher", release.record.signer),
    ]
    rows = [(escape(label), f"<code>{escape(value)}</code>") for label, value in lines]
    data = [(f"<code>{escape(each.path)}</code>", short(each.sha256)) for each in said.data]
    needs = [
        (escape(each.name), escape(each.version), short(each.sha256)) for each in said.dependencies
    ]
    folds = fold("Digests", table(("What", "SHA-256 or address"), rows))
    folds += fold(f"Data files ({len(data)})", table(("Path", "SHA-256"), data)) if data else ""
    head = ("Name", "Version", "SHA-256 of its files")
    folds += fold(f"Dependencies it was checked with ({len(needs)})", table(head, needs))
    return f"<section><h2>What is signed</h2>{folds}</section>"
