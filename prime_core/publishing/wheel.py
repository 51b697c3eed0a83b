"""Wheels: built twice to show that they are reproducible, and read without trusting them.

Called by `publish` before signing and by `install` before pip sees a byte. A wheel that reads has
safe paths, bounded sizes, and a RECORD that covers every file with its right hash.
"""

from __future__ import annotations

import base64
import configparser
import csv
import hashlib
import importlib.util
import io
import lzma
import os
import struct
import subprocess
import sys
import tomllib
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import Parser
from pathlib import Path, PurePosixPath

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import InvalidVersion, Version

from prime_core.api.errors import FormatError, IntegrityError, RunError

MAX_WHEEL = 512 * 2**20  # bytes of the file
MAX_UNPACKED = 2**30  # bytes of its content; a bomb announces or holds more
MAX_FILES = 20_000
# The epoch that hatchling takes by itself: 2020-02-02, which zip can say.
EPOCH = "1580601600"
BUILD_LIMIT_S = 600


@dataclass(frozen=True, slots=True)
class Wheel:
    """What a wheel says of itself, and digests of what it holds.

    Attributes:
        plugins: (kind, name, module) of every entry point of group prime_core, sorted.
        source_sha256: `tree_digest` of its Python files: the reward's source.
        content_sha256: over names and contents of its files but RECORD and WHEEL, as the check's
            report has it.
        data: path and SHA-256 of every file that isn't Python or metadata, sorted.
        metadata: the bytes of METADATA.
        readme: the description, Markdown or plain text.
    """

    filename: str
    sha256: str
    size: int
    name: str
    version: str
    requires_python: str
    requires: tuple[str, ...]
    summary: str
    licence: str
    plugins: tuple[tuple[str, str, str], ...]
    source_sha256: str
    content_sha256: str
    data: tuple[tuple[str, str], ...]
    metadata: bytes
    readme: str


def tree_digest(files: Mapping[str, str]) -> str:
    """SHA-256 (hex) over path and SHA-256 of files, sorted by path, a line each."""
    text = "".join(f"{path}\0{digest}\n" for path, digest in sorted(files.items()))
    return hashlib.sha256(text.encode()).hexdigest()


def build(project: Path, out: Path) -> Path:
    """Build the project's wheel twice, in two folders below `out`, and hold one against the other.

    Raises:
        RunError: there is no project, or its build fails or takes longer than ten minutes.
        IntegrityError: the two builds differ.
    """
    if not (project / "pyproject.toml").is_file():
        raise RunError(
            "there is no pyproject.toml",
            where=str(project),
            fix="give the folder of a distribution; `prime-core new` makes one",
        )
    isolated = not _backend_is_here(project)
    first, second = (
        _build_once(project, out / name, isolated=isolated, zone=zone)
        for name, zone in (("first", "UTC"), ("second", "Asia/Tokyo"))
    )
    if first.name != second.name or first.read_bytes() != second.read_bytes():
        raise IntegrityError(
            "two builds of the same tree give different wheels",
            where=str(project),
            fix="build with hatchling, and write no time, path or random number into the wheel",
        )
    return first


def _backend_is_here(project: Path) -> bool:
    """Whether the build backend is hatchling and importable: then no download is needed."""
    try:
        document = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(
            f"pyproject.toml can't be read: {error}", where=str(project), fix="correct it"
        ) from error
    system = document.get("build-system", {})
    wanted = system.get("requires", []) if isinstance(system, dict) else []
    return wanted == ["hatchling"] and importlib.util.find_spec("hatchling") is not None


def _build_once(project: Path, out: Path, *, isolated: bool, zone: str) -> Path:
    out = out.absolute()  # the build runs in the project's folder
    out.mkdir(parents=True)
    pip = ["-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--wheel-dir", str(out)]
    hatchling = ["-m", "hatchling", "build", "--target", "wheel", "--directory", str(out)]
    command = [*pip, "--disable-pip-version-check", "."] if isolated else hatchling
    variables = {"SOURCE_DATE_EPOCH": os.environ.get("SOURCE_DATE_EPOCH", EPOCH)}
    try:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=project,
            capture_output=True,
            text=True,
            timeout=BUILD_LIMIT_S,
            env={**os.environ, **variables, "PYTHONHASHSEED": str(len(zone)), "TZ": zone},
        )
    except subprocess.TimeoutExpired as error:
        raise RunError(f"the build takes over {BUILD_LIMIT_S} s", where=str(project)) from error
    wheels = sorted(out.glob("*.whl"))
    if done.returncode != 0 or len(wheels) != 1:
        raise RunError(
            f"the wheel can't be built:\n{(done.stderr or done.stdout).strip()[-2000:]}",
            where=str(project),
            fix=f"make `pip wheel --no-deps {project}` work",
        )
    return wheels[0]


def read_wheel(data: bytes, filename: str) -> Wheel:
    """Read a wheel; nothing is unpacked to disk.

    Raises:
        FormatError: it isn't a wheel of that name, or its paths or sizes are dangerous.
        IntegrityError: a file isn't the one that RECORD says.
    """
    try:
        name, version, _, _ = parse_wheel_filename(filename)
    except InvalidWheelFilename as error:
        raise FormatError(f"{filename!r} is no wheel's name: {error}") from error
    if len(data) > MAX_WHEEL:
        raise FormatError(f"wheel of {len(data)} bytes is above {MAX_WHEEL}", where=filename)
    contents = _contents(data, filename)
    folders = {path.split("/")[0] for path in contents if ".dist-info/" in path}
    folder = folders.pop() if len(folders) == 1 else ""
    if canonicalize_name(folder.removesuffix(".dist-info").partition("-")[0]) != name:
        raise FormatError("has no dist-info folder of its name", where=filename)
    _check_record(contents, folder, filename)
    headers = Parser().parsestr(_text(contents, f"{folder}/METADATA", filename))
    said = (canonicalize_name(headers["Name"] or ""), headers["Version"] or "")
    if said[0] != name or _version(said[1], filename) != version:
        raise FormatError(f"METADATA says {said[0]} {said[1]}", where=filename)
    hashes = {path: hashlib.sha256(content).hexdigest() for path, content in contents.items()}
    inside = {path: found for path, found in hashes.items() if not path.startswith(f"{folder}/")}
    described = headers.get_payload()
    return Wheel(
        filename=filename,
        sha256=hashlib.sha256(data).hexdigest(),
        size=len(data),
        name=name,
        version=str(version),
        requires_python=headers["Requires-Python"] or "",
        requires=tuple(headers.get_all("Requires-Dist") or ()),
        summary=headers["Summary"] or "",
        licence=headers["License-Expression"] or headers["License"] or "",
        plugins=_plugins(contents.get(f"{folder}/entry_points.txt", b""), filename),
        source_sha256=tree_digest({p: h for p, h in inside.items() if p.endswith(".py")}),
        content_sha256=_content_digest(contents, folder),
        data=tuple(sorted((p, h) for p, h in inside.items() if not p.endswith(".py"))),
        metadata=contents[f"{folder}/METADATA"],
        readme=described if isinstance(described, str) else "",
    )


def _content_digest(contents: Mapping[str, bytes], folder: str) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(contents.items()):
        if name not in (f"{folder}/RECORD", f"{folder}/WHEEL"):  # they name the build tool
            head = f"{len(name.encode())} {len(content)} {name}"
            digest.update(head.encode() + content)
    return digest.hexdigest()


def _contents(data: bytes, filename: str) -> dict[str, bytes]:
    """Every file of the archive, by path."""
    contents: dict[str, bytes] = {}
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MAX_FILES:
                raise FormatError(f"wheel holds more than {MAX_FILES} files", where=filename)
            if sum(entry.file_size for entry in entries) > MAX_UNPACKED:
                raise FormatError(f"wheel unpacks to more than {MAX_UNPACKED} bytes")
            for entry in entries:
                path = _safe(entry.filename, filename)
                if path in contents:
                    raise FormatError(f"{path} stands twice in it", where=filename)
                if entry.external_attr >> 28 == 0xA:
                    raise FormatError(f"{path} is a symbolic link", where=filename)
                with archive.open(entry) as file:
                    contents[path] = file.read(entry.file_size + 1)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, lzma.LZMAError, struct.error,
            NotImplementedError, OSError, EOFError, RuntimeError, ValueError,
            IndexError) as error:  # fmt: skip
        # IndexError: zipfile looks at the last character of an empty name.
        raise FormatError(f"not a wheel: {error}", where=filename) from error
    return contents


def _safe(path: str, filename: str) -> str:
    parts = PurePosixPath(path).parts
    bad = path.startswith("/") or "\\" in path or ":" in path or "\0" in path or ".." in parts
    if bad or not parts or path != "/".join(parts):
        raise FormatError(f"path {path!r} leads out of the wheel", where=filename)
    return path


def _check_record(contents: Mapping[str, bytes], folder: str, filename: str) -> None:
    """Every file but RECORD itself is listed with its right SHA-256, and nothing else is."""
    own = f"{folder}/RECORD"
    lines = _text(contents, own, filename).splitlines()
    try:
        rows = {row[0]: row for row in csv.reader(lines) if row}
    except csv.Error as error:
        raise FormatError(f"RECORD can't be read: {error}", where=filename) from error
    exempt = {own, f"{own}.jws", f"{own}.p7s"}
    absent = sorted(set(contents) - set(rows) - exempt)
    ghosts = sorted(set(rows) - set(contents))
    if absent or ghosts:
        raise IntegrityError(f"RECORD and content differ: {(absent + ghosts)[0]}", where=filename)
    for path, content in contents.items():
        if path in exempt:
            continue
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if len(rows[path]) < 2 or rows[path][1] != f"sha256={digest}":
            raise IntegrityError(f"{path} isn't the file that RECORD names", where=filename)


def _plugins(entry_points: bytes, filename: str) -> tuple[tuple[str, str, str], ...]:
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their case
    try:
        parser.read_string(entry_points.decode())
    except (configparser.Error, UnicodeDecodeError) as error:
        raise FormatError(f"entry_points.txt can't be read: {error}", where=filename) from error
    if not parser.has_section("prime_core"):
        return ()
    found = []
    for entry, module in parser.items("prime_core"):
        kind, _, name = entry.partition(".")
        found.append((kind, name, module.strip()))
    return tuple(sorted(found))


def _text(contents: Mapping[str, bytes], path: str, filename: str) -> str:
    try:
        return contents[path].decode()
    except (KeyError, UnicodeDecodeError) as error:
        raise FormatError(f"{path} is missing or no UTF-8", where=filename) from error


def _version(text: str, filename: str) -> Version:
    try:
        return Version(text)
    except InvalidVersion as error:
        raise FormatError(f"METADATA says version {text!r}", where=filename) from error
