"""Holds a whole index against its signatures and digests, and copies one that stands.

Called by `prime-core index verify | mirror`. What doesn't stand is reported, and never copied.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.index import Index, Upload
from prime_core.publishing.publication import RECORD_LIMIT
from prime_core.publishing.source import (
    Release,
    Source,
    every_release,
    read_blob,
    read_owner,
    wheel_bytes,
)
from prime_core.publishing.wheel import read_wheel
from prime_core.store.objects import ObjectExistsError


@dataclass(slots=True)
class Audit:
    """What was looked at and what is wrong with it."""

    projects: int = 0
    versions: int = 0
    problems: list[PrimeError] = field(default_factory=list)


def verify(source: Source, publishers: Collection[str] = ()) -> Audit:
    """Verify every record, wheel, report and card; and the pages, where the index can be listed.

    Args:
        publishers: addresses that may have signed; empty for any.
    """
    audit = Audit()
    for name, found in every_release(source, audit.problems):
        audit.projects += 1
        owner = _owner(source, name, audit)
        for release in found:
            audit.versions += 1
            signer = release.record.signer
            if owner is not None and signer != owner:
                audit.problems.append(_wrong(release, f"is signed by {signer}, owner is {owner}"))
            if publishers and signer not in publishers:
                audit.problems.append(_wrong(release, f"is signed by {signer}, whom nobody named"))
            try:
                blobs(source, release)
            except (FormatError, IntegrityError, StoreError) as error:
                audit.problems.append(error)
    return audit


def stale(index: Index) -> list[PrimeError]:
    """A problem for every page that isn't what the records give."""
    return [
        IntegrityError(
            "page isn't what the records give",
            where=f"{index.store.url}/{path}",
            fix=f"prime-core index build {index.store.url}",
        )
        for path in index.stale_pages([])
    ]


def _owner(source: Source, name: str, audit: Audit) -> str | None:
    try:
        owner = read_owner(source, name)
    except (FormatError, IntegrityError, StoreError) as error:
        audit.problems.append(error)
        return None
    if owner is None:
        audit.problems.append(IntegrityError(f"{name} has no owner", where=source.url))
    return owner


def blobs(source: Source, release: Release) -> tuple[tuple[str, str, bytes], ...]:
    """The four blobs of a release, verified: digests, and that the wheel is the record's.

    Raises:
        FormatError, IntegrityError, StoreError: as said.
    """
    said = release.record.value
    data = wheel_bytes(source, release)
    check_wheel(release, data)
    beside = f"{said.filename}.metadata"
    metadata = source.get(layout.blob_path(said.sha256, beside), RECORD_LIMIT)
    wheel = read_wheel(data, said.filename)
    if metadata != wheel.metadata:
        raise _wrong(release, "has another METADATA beside its wheel")
    return (
        (said.sha256, said.filename, data),
        (said.sha256, beside, metadata),
        (said.report_sha256, "report.json", read_blob(source, said.report_sha256, "report.json")),
        (said.card_sha256, "card.json", read_blob(source, said.card_sha256, "card.json")),
    )


def check_wheel(release: Release, data: bytes) -> None:
    """The wheel's own metadata say what the record says of it.

    Raises:
        FormatError, IntegrityError: they don't.
    """
    said = release.record.value
    wheel = read_wheel(data, said.filename)
    plugins = tuple((plugin.kind, plugin.name, plugin.module) for plugin in said.plugins)
    pairs = (
        ("requirements", wheel.requires, said.requires),
        ("plugins", wheel.plugins, plugins),
        ("Python range", wheel.requires_python, said.requires_python),
        ("source", wheel.source_sha256, said.source_sha256),
        ("data", wheel.data, tuple((each.path, each.sha256) for each in said.data)),
    )
    for what, here, there in pairs:
        if here != there:
            raise _wrong(release, f"has another {what} in its wheel than in its record")


def mirror(source: Source, target: Index, problems: list[PrimeError]) -> int:
    """Copy every release that verifies and isn't there yet; how many were copied.

    Records keep their signatures, so a mirror is as good as what it was copied from. Yanks and
    owners are copied too; the target's own are never replaced.
    """
    copied = 0
    for name, found in every_release(source, problems):
        try:
            _copy(source, target, layout.owner_path(name))
            owner = read_owner(target.source, name)
        except (FormatError, IntegrityError, StoreError) as error:
            problems.append(error)
            continue
        for release in found:
            said = release.record.value
            try:
                if release.record.signer != owner:
                    raise _wrong(release, f"is signed by {release.record.signer}, not by {owner}")
                path = layout.record_path(name, said.version)
                if target.store.exists(path):
                    _copy(source, target, path)
                else:
                    target.put(Upload(name, said.version, release.raw, blobs(source, release)))
                    copied += 1
                if release.yanked is not None:
                    _copy(source, target, layout.yank_path(name, said.version))
            except (FormatError, IntegrityError, StoreError) as error:
                problems.append(error)
    problems += target.build()
    return copied


def _copy(source: Source, target: Index, path: str) -> None:
    """Copy a signed object; one that is there with other bytes stays, and is a problem."""
    data = source.get(path, RECORD_LIMIT)
    try:
        target.store.put_same(path, data)
    except ObjectExistsError as error:
        raise StoreError(
            "the mirror has another one", where=f"{target.store.url}/{path}"
        ) from error


def _wrong(release: Release, what: str) -> IntegrityError:
    said = release.record.value
    return IntegrityError(
        f"{said.name} {said.version} {what}", fix="don't use it; ask whoever runs the index"
    )
