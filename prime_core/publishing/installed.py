"""What is installed in an interpreter, and the publication that `install` left beside it.

Read by `install` and by `trust`. The record lies in the distribution's own dist-info and is listed
in RECORD, so that pip removes it with the rest.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.utils import canonicalize_name

from prime_core.api.errors import FormatError, IntegrityError, RunError
from prime_core.publishing.publication import RECORD_LIMIT, Publication, Signed
from prime_core.publishing.wheel import tree_digest

PUBLICATION = "prime-core-publication.json"
LIMIT_S = 60
# Runs in other interpreters, so it needs nothing but the standard library.
_LIST = """
import importlib.metadata, json
found = []
for each in importlib.metadata.distributions():
    try:
        entries = [entry.name for entry in each.entry_points if entry.group == "prime_core"]
    except (TypeError, ValueError):
        entries = []
    name = each.metadata["Name"]
    if name:
        found.append([name, each.metadata["Version"] or "", str(each.locate_file("")), entries])
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """One installed distribution.

    Attributes:
        name: normalised.
        location: the folder that holds its dist-info.
        entries: its entry points of group prime_core, as <kind>.<name>.
    """

    name: str
    version: str
    location: Path
    entries: tuple[str, ...] = ()

    @property
    def dist_info(self) -> Path:
        """Its dist-info folder.

        Raises:
            RunError: it has none; it isn't installed from a wheel.
        """
        for folder in sorted(self.location.glob("*.dist-info")):
            name, _, version = folder.name.removesuffix(".dist-info").partition("-")
            if canonicalize_name(name) == self.name and version == self.version:
                return folder
        raise RunError(
            f"{self.name} {self.version} has no dist-info",
            where=str(self.location),
            fix="install it from a wheel",
        )


def installed(python: Path | None = None, target: Path | None = None) -> dict[str, Installed]:
    """Every distribution of an interpreter by normalised name; the first of a name counts.

    Args:
        python: the interpreter; None for this one.
        target: a folder of `pip install --target`, which is looked at instead.

    Raises:
        RunError: the interpreter can't be asked.
    """
    # The modules that the listing imports must be there before the path is narrowed.
    narrowed = (
        f"import email.parser, importlib.metadata, json, sys\nsys.path[:] = [{str(target)!r}]"
    )
    code = _LIST if target is None else f"{narrowed}\n{_LIST}"
    try:
        done = subprocess.run(
            [str(python or sys.executable), "-c", code],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=True,
        )
        rows = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        raise RunError(
            f"the interpreter can't be asked what it holds: {error}", where=str(python or "")
        ) from error
    found: dict[str, Installed] = {}
    for name, version, location, entries in rows:
        normal = canonicalize_name(name)
        found.setdefault(normal, Installed(normal, version, Path(location), tuple(entries)))
    return found


def publication(one: Installed) -> Signed[Publication] | None:
    """The publication that was verified when it was installed; None where there is none.

    Raises:
        FormatError, IntegrityError: it was changed since, or is of something else.
    """
    path = one.dist_info / PUBLICATION
    try:
        with path.open("rb") as file:
            raw = file.read(RECORD_LIMIT + 1)
    except FileNotFoundError:
        return None
    found = Publication.read(raw, None, where=str(path))
    if (found.value.name, found.value.version) != (one.name, one.version):
        raise IntegrityError(
            f"the record is of {found.value.name} {found.value.version}", where=str(path)
        )
    return found


def source_digest(one: Installed) -> str:
    """`wheel.tree_digest` of the Python files that RECORD lists, as they are now."""
    files: dict[str, str] = {}
    for row in _rows(one.dist_info):
        path = row[0]
        if path.endswith(".py") and not path.startswith("..") and not Path(path).is_absolute():
            try:
                data = (one.location / path).read_bytes()
            except OSError:
                data = b""  # a missing file is a changed one
            files[path] = hashlib.sha256(data).hexdigest()
    return tree_digest(files)


def editable(one: Installed) -> bool:
    """Whether its files lie where they are edited (`pip install -e`), so that RECORD lists none.

    Source: PEP 610, `direct_url.json` with `dir_info.editable`. False where nothing says so.
    """
    try:
        raw = (one.dist_info / "direct_url.json").read_bytes()[:RECORD_LIMIT]
        return bool(json.loads(raw)["dir_info"]["editable"])
    except (OSError, RunError, ValueError, KeyError, TypeError):
        return False


def note(one: Installed, raw: bytes) -> None:
    """Leave a verified record beside what was installed.

    Raises:
        RunError: it can't be written.
    """
    folder = one.dist_info
    digest = base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).rstrip(b"=").decode()
    place = f"{folder.name}/{PUBLICATION}"
    rows = [row for row in _rows(folder) if row[0] != place]
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(
        [*rows, [place, f"sha256={digest}", str(len(raw))]]
    )
    try:
        _replace(folder / PUBLICATION, raw)
        _replace(folder / "RECORD", text.getvalue().encode())
    except OSError as error:
        raise RunError(f"can't be written: {error.strerror}", where=str(folder)) from error


def _rows(folder: Path) -> Iterator[list[str]]:
    try:
        text = (folder / "RECORD").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(
            "RECORD can't be read", where=str(folder), fix="install it from a wheel"
        ) from error
    yield from (row for row in csv.reader(text.splitlines()) if row)


def _replace(path: Path, data: bytes) -> None:
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{secrets.token_hex(4)}")
    temporary.write_bytes(data)
    temporary.replace(path)
