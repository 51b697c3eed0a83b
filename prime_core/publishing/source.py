"""Reads an index: a folder, an object store, or any static web server that holds its files.

Used by everything that reads one. Nothing is believed: `Release`s come from signed records, and a
blob is handed out after its SHA-256 was compared with the one in the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from urllib.parse import quote, urlsplit

from packaging.version import Version

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.publication import RECORD_LIMIT, Owner, Publication, Signed, Yank
from prime_core.publishing.wheel import MAX_WHEEL
from prime_core.store.objects import ObjectMissingError, ObjectStore

MACHINE_LIMIT = 64 * 2**20  # bytes of index.json
BLOB_LIMIT = 64 * 2**20  # bytes of a report or card
HTTP_LIMIT_S = 60


class Source(Protocol):
    """Where an index lies."""

    url: str

    def get(self, path: str, limit: int) -> bytes:
        """The object's bytes; ObjectMissingError, FormatError above the limit, StoreError."""
        ...

    def projects(self) -> list[str]:
        """Names of the projects, sorted."""
        ...

    def versions(self, name: str) -> list[str]:
        """Keys of the project's published versions, unsorted; [] if there is none."""
        ...


@dataclass(frozen=True, slots=True)
class Release:
    """One published version, as verified.

    Attributes:
        key: `layout.version_key` of the version.
        raw: the record's bytes, as `install` keeps them.
        yanked: the reason, or None.
    """

    key: str
    record: Signed[Publication]
    raw: bytes
    yanked: str | None

    @property
    def version(self) -> Version:
        """For comparing."""
        return Version(self.record.value.version)


class StoreSource:
    """An index in a directory or object store."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self.url = store.url

    def get(self, path: str, limit: int) -> bytes:
        """See `Source`."""
        return self.store.get(path, limit)

    def projects(self) -> list[str]:
        """See `Source`."""
        return self.store.folders(layout.RECORDS)

    def versions(self, name: str) -> list[str]:
        """See `Source`."""
        found = self.store.folders(layout.versions_dir(name))
        return [each for each in found if self.store.exists(layout.record_path(name, each))]


class HttpSource:
    """An index behind a web server; its `index.json` says what there is."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._listed: dict[str, list[str]] | None = None

    def get(self, path: str, limit: int) -> bytes:
        """See `Source`; redirects aren't followed."""
        import httpx

        where = f"{self.url}/{quote(path)}"
        data = bytearray()
        try:
            with httpx.stream("GET", where, timeout=HTTP_LIMIT_S) as answer:
                if answer.status_code == httpx.codes.NOT_FOUND:
                    raise ObjectMissingError("no such object", where=where)
                if answer.status_code != httpx.codes.OK:
                    raise StoreError(f"the server answers {answer.status_code}", where=where)
                for chunk in answer.iter_bytes():
                    data += chunk
                    if len(data) > limit:
                        raise FormatError(f"object holds more than {limit} bytes", where=where)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StoreError(
                f"the server can't be reached: {error}", where=where, fix="check the URL"
            ) from error
        return bytes(data)

    def projects(self) -> list[str]:
        """See `Source`."""
        return sorted(self._machine())

    def versions(self, name: str) -> list[str]:
        """See `Source`."""
        return self._machine().get(layout.project(name), [])

    def _machine(self) -> dict[str, list[str]]:
        if self._listed is None:
            self._listed = read_machine(self.get(layout.MACHINE, MACHINE_LIMIT), self.url)
        return self._listed


def read_machine(data: bytes, where: str) -> dict[str, list[str]]:
    """Version keys by project, from `index.json`.

    Raises:
        FormatError: it isn't one.
    """
    try:
        rows = json.loads(data)["projects"]
        return {
            layout.project(row["name"]): [
                layout.version_key(each["key"]) for each in row["versions"]
            ]
            for row in rows
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, PrimeError) as error:
        raise FormatError(
            "index.json isn't that of an index",
            where=where,
            fix="build it with `prime-core index build URL`",
        ) from error


def open_source(url: str) -> Source:
    """The index at a URL.

    Raises:
        StoreError: there is none, or it can't be read.
    """
    if urlsplit(url).scheme in ("http", "https"):
        source: Source = HttpSource(url)
    else:
        source = StoreSource(ObjectStore(url))
    try:
        source.get(layout.MACHINE, MACHINE_LIMIT)
    except ObjectMissingError as error:
        raise StoreError(
            "there is no index",
            where=url,
            fix="check the URL; `prime-core index build URL` starts one",
        ) from error
    return source


def read_release(source: Source, name: str, key: str) -> Release:
    """One published version, its signatures verified, and that it's the one that was asked for.

    Raises:
        ObjectMissingError: there is none.
        FormatError, IntegrityError: it can't be trusted.
    """
    path = layout.record_path(name, key)
    where = f"{source.url}/{path}"
    raw = source.get(path, RECORD_LIMIT)
    record = Publication.read(raw, None, where=where)
    said = record.value
    if said.name != layout.project(name) or layout.version_key(said.version) != key:
        raise IntegrityError(
            f"the record is of {said.name} {said.version}, not of {name} {key}",
            where=where,
            fix="the index was tampered with; install from another copy of it",
        )
    return Release(key, record, raw, read_yank(source, record, key))


def read_yank(source: Source, record: Signed[Publication], key: str) -> str | None:
    """Why a version is yanked, if its publisher says so about these very bytes.

    Raises:
        FormatError, IntegrityError: somebody else says so.
    """
    said = record.value
    path = layout.yank_path(said.name, key)
    where = f"{source.url}/{path}"
    try:
        raw = source.get(path, RECORD_LIMIT)
    except ObjectMissingError:
        return None
    yank = Yank.read(raw, record.signer, where=where).value
    if (yank.name, yank.version, yank.sha256) != (said.name, said.version, said.sha256):
        raise IntegrityError(f"it yanks {yank.name} {yank.version}", where=where)
    return yank.reason


def read_owner(source: Source, name: str) -> str | None:
    """The address of a name's owner; None while there is none.

    Raises:
        FormatError, IntegrityError: the claim can't be trusted.
    """
    path = layout.owner_path(name)
    where = f"{source.url}/{path}"
    try:
        raw = source.get(path, RECORD_LIMIT)
    except ObjectMissingError:
        return None
    claim = Owner.read(raw, None, where=where)
    if claim.value.name != layout.project(name):
        raise IntegrityError(f"it claims {claim.value.name}", where=where)
    return claim.signer


def read_blob(source: Source, sha256: str, filename: str, limit: int = BLOB_LIMIT) -> bytes:
    """A file of the index that has this SHA-256.

    Raises:
        ObjectMissingError: there is none.
        IntegrityError: it holds other bytes.
    """
    path = layout.blob_path(sha256, filename)
    data = source.get(path, limit)
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise IntegrityError(
            f"SHA-256 is {found}, the signed record says {sha256}",
            where=f"{source.url}/{path}",
            fix="the index was damaged or tampered with; use another copy of it",
        )
    return data


def wheel_bytes(source: Source, release: Release) -> bytes:
    """The wheel of a release, verified; errors as `read_blob`."""
    said = release.record.value
    data = read_blob(source, said.sha256, said.filename, MAX_WHEEL)
    if len(data) != said.size:
        raise IntegrityError(f"wheel has {len(data)} bytes, the record says {said.size}")
    return data


def releases(source: Source, name: str, problems: list[PrimeError]) -> list[Release]:
    """Every version that can be trusted, newest first; what can't be is added to `problems`."""
    found: list[Release] = []
    for key in source.versions(name):
        try:
            found.append(read_release(source, name, key))
        except (FormatError, IntegrityError, StoreError) as error:
            problems.append(error)
    return sorted(found, key=lambda each: each.version, reverse=True)


def every_release(
    source: Source, problems: list[PrimeError]
) -> Iterator[tuple[str, Sequence[Release]]]:
    """Projects by name, with what `releases` gives of each."""
    for name in source.projects():
        try:
            layout.project(name)
        except FormatError as error:
            problems.append(error)
            continue
        yield name, releases(source, name, problems)
