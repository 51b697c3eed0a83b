"""From what the user names to a `Distribution`: finds the source, builds the wheel, unpacks it.

`prime_core.check.checking` calls it once a check. Invariant: the build backend runs in a jail, on
a copy; nothing is written beside the source, and nothing is unpacked outside the scratch folder.
"""

from __future__ import annotations

import importlib.metadata
import json
import lzma
import shutil
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from prime_core.api import FormatError, RunError
from prime_core.check.checks_file import NAME as CHECKS_NAME
from prime_core.check.checks_file import ChecksFile, read_checks_file
from prime_core.check.distribution import Distribution, files_digest, source_files
from prime_core.check.launching import Launcher
from prime_core.check.measures import read_left

SOURCE_BYTES = 256 << 20  # of a source tree that is copied for the build
WHEEL_BYTES = 1 << 30  # of an unpacked wheel
BUILD_LIMIT_S = 120.0

# Run in a jail: builds a wheel of the folder argv[1] into argv[2], as PEP 517 says.
BUILD = """
import importlib, os, sys, tomllib
source, out = sys.argv[1:]
os.chdir(source)
with open("pyproject.toml", "rb") as file:
    system = tomllib.load(file).get("build-system", {})
name = system.get("build-backend", "setuptools.build_meta:__legacy__")
sys.path[:0] = [os.path.join(source, each) for each in system.get("backend-path", [])]
module, _, path = name.partition(":")
backend = importlib.import_module(module)
for part in filter(None, path.split(".")):
    backend = getattr(backend, part)
print("built", backend.build_wheel(out))
"""


def locate(target: str) -> tuple[Path | None, Path | None, importlib.metadata.Distribution | None]:
    """(source folder, wheel file, installed distribution) that a target means; one is not None.

    A target is a folder, a wheel, or the name of an installed distribution or plugin; one that was
    installed from a folder in editable mode means that folder.

    Raises:
        RunError: it's none of them.
    """
    path = Path(target)
    if path.is_dir():
        return path.resolve(), None, None
    if path.is_file() and path.suffix == ".whl":
        return None, path.resolve(), None
    installed = None if path.exists() or "/" in target else _installed(target)
    if installed is None:
        raise RunError(
            f"{target!r} is neither a folder, a wheel, nor an installed distribution or plugin",
            fix="give the folder that holds pyproject.toml, or see `prime-core plugins list`",
        )
    editable = _editable_source(installed)
    return (editable, None, None) if editable else (None, None, installed)


def _installed(target: str) -> importlib.metadata.Distribution | None:
    from prime_core.hub import Hub
    from prime_core.hub.describe import find_by_text

    try:
        return importlib.metadata.distribution(target)
    except (importlib.metadata.PackageNotFoundError, ValueError):
        names = {n for record in Hub.discover().records() for n in (record.name, record.label)}
        if target.partition("@")[0] not in names:
            return None
        record = find_by_text(Hub.discover(), target)
        return importlib.metadata.distribution(record.distribution)


def _editable_source(installed: importlib.metadata.Distribution) -> Path | None:
    try:
        described = json.loads(installed.read_text("direct_url.json") or "{}")
    except ValueError:
        return None
    if not described.get("dir_info", {}).get("editable"):
        return None
    folder = Path(unquote(urlsplit(described.get("url", "")).path))
    return folder if (folder / "pyproject.toml").is_file() else None


async def stage(target: str, scratch: Path, launcher: Launcher) -> Distribution:
    """The distribution that a target means, built and unpacked under `scratch`.

    Raises:
        RunError: the target means nothing.
    """
    source, wheel, installed = locate(target)
    if installed is not None:
        return _of_installation(target, installed)
    checks, problem = _checks(source)
    error = ""
    if source is not None:
        wheel, error = await _build(source, scratch, launcher)
    if wheel is None:
        return Distribution(target, source, None, error, checks=checks, checks_error=problem)
    site = scratch / "site"
    try:
        names, digest, refusals = unpack(wheel, site)
    except FormatError as unreadable:
        return Distribution(
            target, source, None, unreadable.what, checks=checks, checks_error=problem
        )
    return Distribution(
        target, source, site, "", names, digest, checks, problem, refusals, wheel=wheel
    )


def _checks(source: Path | None) -> tuple[ChecksFile, str]:
    if source is None:
        return ChecksFile(), ""
    try:
        return read_checks_file(source), ""
    except FormatError as error:
        return ChecksFile(), f"{CHECKS_NAME}: {error.what}"


def _of_installation(target: str, installed: importlib.metadata.Distribution) -> Distribution:
    root = Path(str(installed.locate_file("")))
    listed = [str(file) for file in installed.files or []]
    names = sorted(
        name for name in listed if not name.startswith("..") and "__pycache__" not in name
    )
    contents = [(name, (root / name).read_bytes()) for name in names if (root / name).is_file()]
    return Distribution(
        target, None, root, "", tuple(names), files_digest(contents), target_is_installed=True
    )


async def _build(source: Path, scratch: Path, launcher: Launcher) -> tuple[Path | None, str]:
    """(wheel, reason why there is none)."""
    if not (source / "pyproject.toml").is_file():
        return None, "there is no pyproject.toml"
    copy, out = launcher.inside / "source", launcher.inside / "wheel"
    out.mkdir()
    files = source_files(source)
    if sum(path.stat().st_size for path in files) > SOURCE_BYTES:
        return None, f"the source holds more than {SOURCE_BYTES >> 20} MiB"
    for path in files:
        target = copy / path.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    script = scratch / "build.py"
    script.write_text(BUILD, encoding="utf-8")
    ended = await launcher.run(["-P", str(script), str(copy), str(out)], BUILD_LIMIT_S)
    wheels = sorted(out.glob("*.whl"))
    if ended.code != 0 or len(wheels) != 1:
        return None, ended.how if ended.code else f"the backend left {len(wheels)} wheels"
    kept = scratch / wheels[0].name  # out of reach of what runs later
    try:
        kept.write_bytes(read_left(wheels[0]))
    except (OSError, FormatError) as error:
        return None, f"the wheel can't be read: {error}"
    return kept, ""


def unpack(wheel: Path, site: Path) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
    """Unpack a wheel; returns its file names, the digest over them, and what was refused.

    Raises:
        FormatError: it isn't a zip file, or too large.
    """
    refused: list[str] = []
    contents: list[tuple[str, bytes]] = []
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [each for each in archive.infolist() if not each.is_dir()]
            if sum(each.file_size for each in members) > WHEEL_BYTES:
                raise FormatError(f"it unpacks to more than {WHEEL_BYTES >> 20} MiB")
            seen: set[str] = set()
            for member in members:
                reason = "it stands there twice" if member.filename in seen else _refusal(member)
                seen.add(member.filename)
                if reason:
                    refused.append(f"{member.filename}: {reason}")
                    continue
                content = archive.read(member)
                contents.append((member.filename, content))
                path = site / member.filename
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error, EOFError, OSError,
            RuntimeError, ValueError, IndexError) as error:  # fmt: skip
        # IndexError: zipfile looks at the last character of an empty name.
        raise FormatError(f"the wheel can't be unpacked: {error}", where=str(wheel)) from error
    # RECORD and WHEEL name the build tool's version, which changes nothing that runs.
    counted = [
        (name, content) for name, content in contents
        if not name.endswith((".dist-info/RECORD", ".dist-info/WHEEL"))
    ]  # fmt: skip
    return tuple(sorted(name for name, _ in contents)), files_digest(counted), tuple(refused)


def _refusal(member: zipfile.ZipInfo) -> str:
    path = PurePosixPath(member.filename)
    if path.is_absolute() or ".." in path.parts or "\\" in member.filename:
        return "its name leads outside"
    if not path.parts or str(path) != member.filename:
        return "its name isn't plain"
    if (member.external_attr >> 16) & 0o170000 == 0o120000:
        return "it is a symbolic link"
    if path.parts[0].endswith(".data"):
        return "data of a wheel is installed outside of the module"
    return ""


def normalised(name: str) -> str:
    """A distribution's name as indexes compare it."""
    return str(canonicalize_name(name))
