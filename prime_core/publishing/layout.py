"""Where everything of an index lies: pure functions from what a thing is to its path.

Objects (owners, records, files) are written once; pages (everything else) are derived from them and
may be written again at any time.
"""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name, canonicalize_version

from prime_core.api.errors import FormatError

OWNERS = "owners"
RECORDS = "records"
FILES = "files"
# pages
SIMPLE = "simple"
MACHINE = "index.json"
PROJECTS = "projects"
ASSETS = "assets"

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,98}[a-z0-9])?")
_VERSION = re.compile(r"[a-z0-9.+]{1,100}")
_FILENAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,199}\.whl")
_SHA256 = re.compile(r"[0-9a-f]{64}")


def project(name: str) -> str:
    """The normalised name of a project.

    Raises:
        FormatError: it's no name of a distribution, or of more than 100 characters.
    """
    normal = canonicalize_name(name)
    if not _NAME.fullmatch(normal):
        raise FormatError(
            f"{name!r} is no distribution's name",
            fix="use letters, digits and hyphens, up to 100",
        )
    return normal


def version_key(version: str) -> str:
    """What equal versions share: 1.0 and 1.0.0 are one, and can't both be published.

    Raises:
        FormatError: it can't name a folder.
    """
    key = canonicalize_version(version)
    if not _VERSION.fullmatch(key) or ".." in key:
        raise FormatError(
            f"{version!r} can't be published",
            fix="use a version of digits, dots and letters, without an epoch",
        )
    return key


def owner_path(name: str) -> str:
    """The signed claim of a name's first publisher."""
    return f"{OWNERS}/{project(name)}.json"


def versions_dir(name: str) -> str:
    """The folder that holds a folder for each published version."""
    return f"{RECORDS}/{project(name)}"


def record_path(name: str, version: str) -> str:
    """The signed record; a version is published once it's there."""
    return f"{versions_dir(name)}/{version_key(version)}/record.json"


def yank_path(name: str, version: str) -> str:
    """The signed statement that a version is withdrawn."""
    return f"{versions_dir(name)}/{version_key(version)}/yanked.json"


def blob_path(sha256: str, filename: str) -> str:
    """A file that a record names by its digest: wheel, report, card.

    Raises:
        FormatError: that isn't a digest and a plain file name.
    """
    plain = filename in ("report.json", "card.json") or _FILENAME.fullmatch(
        filename.removesuffix(".metadata")
    )
    if not _SHA256.fullmatch(sha256) or not plain:
        raise FormatError(f"{filename!r} of digest {sha256!r} can't lie in an index")
    return f"{FILES}/{sha256}/{filename}"
