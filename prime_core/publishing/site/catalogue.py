"""The front page: every project, with a search field and filters that work without a server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from prime_core.publishing.publication import LEVELS
from prime_core.publishing.site.parts import badge, level_badge, page
from prime_core.publishing.source import Release


def newest(releases: Sequence[Release]) -> Release:
    """The newest version that isn't yanked, else the newest."""
    standing = [release for release in releases if release.yanked is None]
    final = [release for release in standing if not release.version.is_prerelease]
    return (final or standing or list(releases))[0]


def catalogue(projects: Mapping[str, Sequence[Release]]) -> bytes:
    """The front page."""
    kinds = sorted(
        {
            plugin.kind
            for found in projects.values()
            for plugin in newest(found).record.value.plugins
        }
    )
    count = len(projects)
    body = f"""<h1>Environments, verifiers and plugins</h1>
<form id="search" role="search">
<label class="wide">Search <input id="q" type="search" autocomplete="off" placeholder="name, \
summary, plugin"></label>
<label>Kind <select id="kind"><option value="">all</option>{_options(kinds)}</select></label>
<label>At least <select id="level">{_options(LEVELS)}</select></label>
</form>
<p id="found" aria-live="polite">{count} project{"s" if count != 1 else ""}</p>
<ul id="projects">
{"".join(_row(name, projects[name]) for name in sorted(projects))}</ul>
<p id="nothing" hidden>Nothing here has all of that.</p>"""
    return page("prime-core index", "", body)


def _options(names: Sequence[str]) -> str:
    return "".join(f'<option value="{escape(name)}">{escape(name)}</option>' for name in names)


def _row(name: str, releases: Sequence[Release]) -> str:
    release = newest(releases)
    said = release.record.value
    labels = [f"{plugin.kind}.{plugin.name}" for plugin in said.plugins]
    kinds = sorted({plugin.kind for plugin in said.plugins})
    words = " ".join([name, said.summary, said.licence, *labels]).lower()
    yanked = "" if release.yanked is None else badge("yanked", "yanked")
    return (
        f'<li class="project" data-words="{escape(words)}" data-kinds="{escape(" ".join(kinds))}" '
        f'data-level="{LEVELS.index(said.check.level)}">'
        f'<h2><a href="projects/{name}/index.html">{escape(name)}</a> '
        f'<span class="version">{escape(said.version)}</span></h2>'
        f'<p>{escape(said.summary)}</p><p class="badges">'
        f"{level_badge(said.check.level)}"
        f"{yanked}{''.join(badge(label, 'plain') for label in labels)}"
        f"{badge(said.licence or 'no licence', 'plain')}</p></li>\n"
    )
