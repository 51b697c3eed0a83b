"""Writes an index: records once, pages again whenever records have changed.

Called by `publish`, `index build | yank | mirror`. The records are the truth; a publisher that dies
leaves a whole index whose pages the next build puts right, and two at once lose nothing.
"""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from prime_core.api.errors import FormatError, IntegrityError, PrimeError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.pages import Pages
from prime_core.publishing.publication import Owner, Publication, Signed, Yank
from prime_core.publishing.simple import machine_page, simple_pages
from prime_core.publishing.source import (
    Release,
    StoreSource,
    every_release,
    read_owner,
    read_release,
)
from prime_core.signing import Signer
from prime_core.store.objects import ObjectExistsError, ObjectStore

BUILDS = 100  # a build that is overtaken this often isn't waiting for publishers any more


@dataclass(frozen=True, slots=True)
class Upload:
    """What one version consists of.

    Attributes:
        record: the signed record's bytes.
        blobs: (SHA-256, file name, bytes) of wheel, metadata, report and card.
    """

    name: str
    version: str
    record: bytes
    blobs: tuple[tuple[str, str, bytes], ...]


class Index:
    """An index that can be written: a directory, s3://, or memory:// in one process."""

    def __init__(self, url: str) -> None:
        self.store = ObjectStore(url)
        self.source = StoreSource(self.store)
        self._pages = Pages(self.store)

    def check_free(self, name: str, version: str) -> None:
        """Refuse a version that is published, before anything is built or checked.

        Raises:
            StoreError: it is.
        """
        if self.store.exists(layout.record_path(name, version)):
            raise _taken(self.store.url, name, version)

    def claim(self, name: str, signer: Signer) -> None:
        """Make the signer the owner of a name that has none, or confirm that it is.

        Raises:
            IntegrityError: somebody else is.
        """
        if read_owner(self.source, name) is None:
            claim = Owner(name=layout.project(name))
            with contextlib.suppress(ObjectExistsError):  # somebody was faster: the next line
                self.store.put(layout.owner_path(name), claim.sign(signer))
        owner = read_owner(self.source, name)
        if owner != signer.address:
            raise IntegrityError(
                f"{name} belongs to {owner}, your key is {signer.address}",
                where=self.store.url,
                fix="publish with the owner's key (--key), or under another name",
            )

    def add(self, upload: Upload, signer: Signer) -> None:
        """Write a version: its blobs, then the record, which makes it visible.

        Raises:
            StoreError: the version exists; nothing of it is changed.
            IntegrityError: the name belongs to somebody else.
        """
        self.check_free(upload.name, upload.version)
        self.claim(upload.name, signer)
        self.put(upload)

    def put(self, upload: Upload) -> None:
        """Write a version's objects as they are; `add` asks for the owner first.

        Raises:
            StoreError: the version exists.
        """
        for sha256, filename, data in upload.blobs:
            # Named by their digest, so whoever wrote the same bytes before did the same work.
            self.store.put_same(layout.blob_path(sha256, filename), data)
        try:
            self.store.put(layout.record_path(upload.name, upload.version), upload.record)
        except ObjectExistsError as error:
            raise _taken(self.store.url, upload.name, upload.version) from error

    def yank(self, name: str, version: str, reason: str, signer: Signer) -> None:
        """Withdraw a version for good; it stays listed, as yanked.

        Raises:
            StoreError: there is no such version, or it is yanked already.
            IntegrityError: the key isn't its publisher's.
            FormatError: no reason is given.
        """
        release = read_release(self.source, name, layout.version_key(version))
        said = release.record.value
        if release.record.signer != signer.address:
            raise IntegrityError(
                f"{said.name} {said.version} was published by {release.record.signer}, "
                f"your key is {signer.address}",
                where=self.store.url,
                fix="yank with its publisher's key (--key)",
            )
        line = " ".join(reason.split())
        if not 1 <= len(line) <= 500:
            raise FormatError("a yank needs a reason of up to 500 characters", fix="--reason TEXT")
        statement = Yank(
            name=said.name,
            version=said.version,
            sha256=said.sha256,
            reason=line,
            yanked_at=int(time.time()),
        )
        try:
            self.store.put(layout.yank_path(name, version), statement.sign(signer))
        except ObjectExistsError as error:
            raise StoreError(
                f"{said.name} {said.version} is yanked already: {release.yanked}",
                where=self.store.url,
            ) from error

    def build(self) -> list[PrimeError]:
        """Write every page anew from the records; what can't be trusted is left out and returned.

        Publishers build at the same time. Each looks again after its last page: whoever writes a
        page last has seen every record that was there before, so none stays unlisted.

        Raises:
            StoreError: a page can't be written.
        """
        seen = self._listing()
        for _ in range(BUILDS):
            problems: list[PrimeError] = []
            for path, data in self.pages(problems).items():
                self._pages.put(path, data)
            now = self._listing()
            if now == seen:
                return problems
            seen = now
        raise StoreError("the index never stops changing", where=self.store.url, fix="build again")

    def pages(self, problems: list[PrimeError]) -> dict[str, bytes]:
        """What every page must hold, by path."""
        from prime_core.publishing.site.build import site_pages

        projects: dict[str, list[Release]] = {}
        owners: dict[str, str] = {}
        for name, found in every_release(self.source, problems):
            try:
                owner = read_owner(self.source, name)
            except (FormatError, IntegrityError) as error:
                problems.append(error)
                owner = None
            mine = [release for release in found if release.record.signer == owner]
            problems += [_foreign(each.record, owner) for each in found if each not in mine]
            if owner is not None and mine:
                projects[name], owners[name] = mine, owner
        return {
            **simple_pages(projects),
            layout.MACHINE: machine_page(projects, owners),
            **site_pages(self.source, projects, problems),
        }

    def stale_pages(self, problems: list[PrimeError]) -> list[str]:
        """Paths of the pages that aren't what the records give."""
        wanted = self.pages(problems)
        return [path for path, data in wanted.items() if self._pages.get(path) != data]

    def _listing(self) -> list[tuple[str, str, bool]]:
        """Every version there is, and whether it's yanked: what pages are derived from."""
        return [
            (name, key, self.store.exists(f"{layout.RECORDS}/{name}/{key}/yanked.json"))
            for name in self.store.folders(layout.RECORDS)
            for key in self.store.folders(f"{layout.RECORDS}/{name}")
            if self.store.exists(f"{layout.RECORDS}/{name}/{key}/record.json")
        ]


def _taken(url: str, name: str, version: str) -> StoreError:
    return StoreError(
        f"{name} {version} is published already, and versions never change",
        where=url,
        fix="raise the version in pyproject.toml; `prime-core index yank` withdraws one",
    )


def _foreign(record: Signed[Publication], owner: str | None) -> IntegrityError:
    said = record.value
    return IntegrityError(
        f"{said.name} {said.version} is signed by {record.signer}, the name belongs to {owner}",
        fix="it is left out of the pages; ask whoever may write to the index",
    )
