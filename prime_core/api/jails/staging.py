"""The root that a jail sees: this interpreter, its standard library and libraries, nothing else.

Copied once a version into a folder that any user may read, because an interpreter often lies in a
home that nobody else may enter. Invariant: a folder of the final name is whole, and stays while
somebody holds its lease.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_core.api.errors import SandboxError
from prime_core.api.jails import leases
from prime_core.api.jails.leases import MANIFEST, TEMPORARY

FORMAT = 3  # raise it when the same interpreter has to be staged anew
LOCALE = Path("/usr/lib/locale/C.utf8")  # what LC_ALL says; the C library has it in a file
PACKAGE_PLACES = 8  # mount points for folders of packages

# Not needed to judge programs, or reaching for a terminal, a network or a test suite.
LEFT_OUT = {"test", "tests", "idlelib", "tkinter", "turtledemo", "lib2to3", "ensurepip"}
LEFT_OUT |= {"site-packages", "dist-packages", "pydoc_data", "__pycache__"}
LEFT_OUT_MODULES = re.compile(
    r"(_ssl|_tkinter|_curses|_curses_panel|readline|_dbm|_gdbm|nis|spwd|ossaudiodev|_test\w*|xx\w*"
    r"|_ctypes_test|_xx\w*)\.[^/]*so$"
)


@dataclass(frozen=True, slots=True)
class StagedRoot:
    """A staged root.

    Attributes:
        path: the folder that becomes a jail's `/`.
        library: the standard library's folder in it.
        digest: SHA-256 (hex) over names and bytes of all its files, bytecode left out.
        lease: keeps it from being removed, until it's closed.
    """

    path: Path
    library: Path
    digest: str
    lease: leases.Lease = field(repr=False, compare=False)

    @property
    def python(self) -> str:
        """The interpreter's path inside."""
        return "/py/bin/python3"


def stage(folders: Sequence[Path], *, other_user: bool) -> StagedRoot:
    """The staged root of this interpreter, made if it isn't there yet.

    Args:
        folders: where it may lie, best first.
        other_user: the jail runs under another user than this process, so that every folder above
            it has to be open to all.

    Raises:
        SandboxError: none of the folders will do, or the interpreter can't be copied.
    """
    key = _key()
    name = f"python-{sys.version_info[0]}.{sys.version_info[1]}.{sys.version_info[2]}-{key[:16]}"
    refused: list[str] = []
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o755)
        except OSError as error:
            refused.append(f"{folder}: {error.strerror}")
            continue
        problem = _closed(folder) if other_user else None
        problem = problem or _foreign(folder)
        lease = leases.take(folder / name) if problem is None else None
        if problem is None and lease is None:
            problem = _make(folder, name)
            lease = leases.take(folder / name)
        if problem is None and lease is not None:
            leases.prune(folder, name)
            return _read(folder / name, lease)
        refused.append(f"{folder}: {problem}")
    raise SandboxError(
        "the interpreter can't be staged for the jails: " + "; ".join(refused),
        fix="set PRIME_CORE_CACHE to a folder that you may write and every user may enter",
    )


def _read(made: Path, lease: leases.Lease) -> StagedRoot:
    manifest = json.loads((made / MANIFEST).read_text())
    root = made / "root"
    return StagedRoot(root, root / "py" / "lib" / manifest["library"], manifest["digest"], lease)


def _closed(folder: Path) -> str | None:
    for above in (folder, *folder.parents):
        if not above.stat().st_mode & 0o001:
            return f"{above} is closed to other users"
    return None


def _foreign(folder: Path) -> str | None:
    """A folder that others may write would let them choose what judges."""
    found = folder.stat()
    if found.st_uid != os.geteuid():
        return "it belongs to another user"
    return "others may write there" if found.st_mode & 0o022 else None


def _inside() -> Iterator[Path]:
    """Our own modules that run inside."""
    here = Path(__file__).parent
    for name in ("zygote", "runner", "surroundings", "encoder", "confine"):
        yield here / f"{name}.py"


def _interpreter() -> Path:
    return Path(getattr(sys, "_base_executable", sys.executable)).resolve()


def _key() -> str:
    executable = _interpreter()
    found = executable.stat()
    parts = [str(FORMAT), str(executable), str(found.st_mtime_ns), str(found.st_size), sys.version]
    digest = hashlib.sha256("\0".join(parts).encode())
    for module in _inside():
        digest.update(module.read_bytes())
    return digest.hexdigest()


def _make(folder: Path, name: str) -> str | None:
    temporary = Path(tempfile.mkdtemp(prefix=TEMPORARY, dir=folder))
    try:
        temporary.chmod(0o755)
        root = temporary / "root"
        library = _fill(root)
        manifest = {"library": library, "digest": _digest(root)}
        (temporary / MANIFEST).write_text(json.dumps(manifest))
        temporary.rename(folder / name)
    except OSError as error:
        if not (folder / name / MANIFEST).is_file():  # else another process was quicker
            return f"{error.strerror or error} ({error.filename})"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return None


def _fill(root: Path) -> str:
    stdlib = Path(sysconfig.get_path("stdlib"))
    for folder in ("py/bin", "py/lib", "tmp", "dev"):
        (root / folder).mkdir(parents=True)
    (root / "dev" / "null").touch()  # the host's is mounted over it
    (root / "dev" / "shm").symlink_to("/tmp")  # noqa: S108 - semaphores, capped and wiped like all there
    if LOCALE.is_dir():
        shutil.copytree(LOCALE, root / LOCALE.relative_to("/"))
    for number in range(PACKAGE_PLACES):
        (root / "packages" / str(number)).mkdir(parents=True)
    library = root / "py" / "lib" / stdlib.name
    shutil.copytree(stdlib, library, ignore=_ignored, symlinks=False)
    dynamic = Path(sysconfig.get_config_var("DESTSHARED") or stdlib / "lib-dynload")
    if not (library / "lib-dynload").is_dir() and dynamic.is_dir():
        shutil.copytree(dynamic, library / "lib-dynload", ignore=_ignored)
    shutil.copy2(_interpreter(), root / "py" / "bin" / "python3")
    elves = [root / "py" / "bin" / "python3", *sorted((library / "lib-dynload").glob("*.so"))]
    _copy_libraries(root, elves)
    for module in _inside():
        shutil.copyfile(module, library / f"prime_{module.name}")
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    # Bytecode that needs no source to be looked at; a jail can't write its own.
    compileall.compile_dir(
        library,
        quiet=2,
        stripdir=str(root),
        invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
    )
    return stdlib.name


def _ignored(folder: str, names: list[str]) -> set[str]:
    return {
        name
        for name in names
        if name in LEFT_OUT
        or name.startswith("config-")
        or LEFT_OUT_MODULES.match(name)
        or name.endswith((".a", ".o"))
    }


def _copy_libraries(root: Path, elves: Sequence[Path]) -> None:
    """Copy what the dynamic loader would load, and the loader under its own path.

    Raises:
        SandboxError: `ldd` isn't there.
    """
    paths = [sysconfig.get_config_var("LIBDIR"), os.environ.get("LD_LIBRARY_PATH")]
    variables = {**os.environ, "LD_LIBRARY_PATH": ":".join(path for path in paths if path)}
    try:
        listed = subprocess.run(
            ["ldd", *map(str, elves)], capture_output=True, text=True, env=variables
        ).stdout
    except OSError as error:
        raise SandboxError(
            f"the interpreter's libraries can't be listed: ldd: {error.strerror}",
            fix="install ldd (package libc-bin)",
        ) from error
    for line in dict.fromkeys(line.strip() for line in listed.splitlines()):
        loader = re.match(r"(/\S*ld-[^/\s]*) \(0x", line)
        library = re.match(r"(\S+) => (/\S+) \(0x", line)
        if loader:
            target = root / loader[1].lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(loader[1]).resolve(), target)
            target.chmod(0o755)
        elif library:
            shutil.copyfile(Path(library[2]).resolve(), root / "py" / "lib" / library[1])


def _digest(root: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            name = str(path.relative_to(root)).encode()
            content = hashlib.sha256(path.read_bytes()).digest()
            digest.update(len(name).to_bytes(4, "big") + name + content)
    return digest.hexdigest()
