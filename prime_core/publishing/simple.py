"""The pages that pip reads: PEP 503 (HTML) and PEP 691 (JSON), and `index.json` for machines.

Pure functions of verified releases: equal releases give equal bytes, whoever builds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from prime_core.publishing import layout
from prime_core.publishing.source import Release

Projects = Mapping[str, Sequence[Release]]
META = {"api-version": "1.1"}  # PEP 700: versions, size, upload-time


def simple_pages(projects: Projects) -> dict[str, bytes]:
    """Every page below simple/, by path."""
    names = sorted(projects)
    listed = {"meta": META, "projects": [{"name": name} for name in names]}
    links = "\n".join(f'<a href="{name}/">{name}</a><br>' for name in names)
    pages = {
        f"{layout.SIMPLE}/index.html": _html("Simple index", links),
        f"{layout.SIMPLE}/index.json": as_json(listed),
    }
    for name in names:
        pages[f"{layout.SIMPLE}/{name}/index.html"] = _project_html(name, projects[name])
        pages[f"{layout.SIMPLE}/{name}/index.json"] = as_json(_project_json(name, projects[name]))
    return pages


def machine_page(projects: Projects, owners: Mapping[str, str]) -> bytes:
    """`index.json`: every project and version with what its record says, for programs."""
    return as_json(
        {
            "format": "prime-core/index/1",
            "projects": [
                {
                    "name": name,
                    "owner": owners.get(name),
                    "versions": [_machine_version(release) for release in projects[name]],
                }
                for name in sorted(projects)
            ],
        }
    )


def _machine_version(release: Release) -> dict[str, Any]:
    said = release.record.value
    return {
        "key": release.key,
        "version": said.version,
        "summary": said.summary,
        "licence": said.licence,
        "level": said.check.level,
        "publisher": release.record.signer,
        "plugins": [f"{plugin.kind}.{plugin.name}" for plugin in said.plugins],
        "record": layout.record_path(said.name, release.key),
        "record_sha256": release.record.sha256,
        "wheel": layout.blob_path(said.sha256, said.filename),
        "sha256": said.sha256,
        "yanked": release.yanked,
    }


def _project_json(name: str, found: Sequence[Release]) -> dict[str, Any]:
    files = []
    for release in found:
        said = release.record.value
        files.append(
            {
                "filename": said.filename,
                "url": f"../../{layout.blob_path(said.sha256, said.filename)}",
                "hashes": {"sha256": said.sha256},
                "requires-python": said.requires_python or None,
                "size": said.size,
                "upload-time": datetime.fromtimestamp(said.published_at, UTC).strftime(
                    "%Y-%m-%dT%H:%M:%SZ"
                ),
                "yanked": False if release.yanked is None else release.yanked,
                "core-metadata": {"sha256": said.metadata_sha256},
            }
        )
    versions = [release.record.value.version for release in found]
    return {"meta": META, "name": name, "versions": versions, "files": files}


def _project_html(name: str, found: Sequence[Release]) -> bytes:
    lines = []
    for release in found:
        said = release.record.value
        where = f"../../{layout.blob_path(said.sha256, said.filename)}#sha256={said.sha256}"
        attributes = {"href": where, "data-core-metadata": f"sha256={said.metadata_sha256}"}
        if said.requires_python:
            attributes["data-requires-python"] = said.requires_python
        if release.yanked is not None:
            attributes["data-yanked"] = release.yanked
        text = " ".join(f'{key}="{escape(value)}"' for key, value in attributes.items())
        lines.append(f"<a {text}>{escape(said.filename)}</a><br>")
    return _html(f"Links for {name}", "\n".join(lines))


def _html(title: str, body: str) -> bytes:
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="pypi:repository-version" content="1.1">'
        f"<title>{escape(title)}</title></head>\n<body>\n{body}\n</body></html>\n"
    ).encode()


def as_json(value: object) -> bytes:
    """Indented JSON with a line feed at its end."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
