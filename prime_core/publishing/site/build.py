"""Every page of the catalogue, from verified releases and the blobs that their records name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.site.catalogue import catalogue
from prime_core.publishing.site.project import Shown, project_page
from prime_core.publishing.source import Release, Source, read_blob

STYLE = ("site.css", "site.js")


def site_pages(
    source: Source, projects: Mapping[str, Sequence[Release]], problems: list[PrimeError]
) -> dict[str, bytes]:
    """Pages and assets, by path."""
    assets = files("prime_core.publishing.site").joinpath("assets")
    pages = {f"{layout.ASSETS}/{name}": assets.joinpath(name).read_bytes() for name in STYLE}
    pages["index.html"] = catalogue(projects)
    for name, releases in projects.items():
        shown = {release.key: _shown(source, release, problems) for release in releases}
        pages[f"{layout.PROJECTS}/{name}/index.html"] = _project(name, releases, shown, problems)
    return pages


def _project(
    name: str, releases: Sequence[Release], shown: Mapping[str, Shown], problems: list[PrimeError]
) -> bytes:
    """A project's page; what its publisher put into card or report can't spoil the others'."""
    try:
        return project_page(name, releases, shown)
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        problems.append(
            FormatError(
                f"the card or report of {name} can't be shown: {error!r:.200}",
                where=f"{layout.PROJECTS}/{name}",
                fix="publish its next version with `prime-core publish`, which writes both",
            )
        )
        return project_page(name, releases, {})


def _shown(source: Source, release: Release, problems: list[PrimeError]) -> Shown:
    said = release.record.value
    return (
        _blob(source, said.card_sha256, "card.json", problems),
        _blob(source, said.report_sha256, "report.json", problems),
    )


def _blob(
    source: Source, sha256: str, filename: str, problems: list[PrimeError]
) -> Mapping[str, Any]:
    """The JSON object of a blob; {} and a problem where it can't be read."""
    try:
        found = json.loads(read_blob(source, sha256, filename))
    except (FormatError, IntegrityError, StoreError) as error:
        problems.append(error)
        return {}
    except (ValueError, RecursionError):
        problems.append(FormatError("not JSON", where=layout.blob_path(sha256, filename)))
        return {}
    return found if isinstance(found, dict) else {}
