"""Virtual environments for hosts: made with venv and pip, recorded, listed, removed.

`prime-core env` calls this. Invariant: an environment with a record is whole; one without is what a
failed `create` left, and is never listed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from prime_core import __version__
from prime_core.api.errors import FormatError, RunError

RECORD = "prime-core-env.json"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class VirtualEnvironment:
    """A virtual environment for hosts, and what it held when it was made.

    Attributes:
        name: its folder's name.
        python: its interpreter, for `python = ...` of a run config.
        python_version: that interpreter's version.
        prime_core: where prime-core was installed from.
        requirements: what was asked for.
        constraints: the constraints file, or None.
        plugins: the plugins installed there, as kind.name.
        packages: name==version of every distribution there, as pip freezes them.
    """

    name: str
    python: str
    python_version: str
    prime_core: str
    requirements: tuple[str, ...]
    constraints: str | None
    plugins: tuple[str, ...]
    packages: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}


def default_root(variables: Mapping[str, str] = os.environ) -> Path:
    """prime-core/envs under XDG_DATA_HOME, else under ~/.local/share."""
    base = variables.get("XDG_DATA_HOME")
    return (Path(base) if base else Path.home() / ".local" / "share") / "prime-core" / "envs"


def own_source() -> str:
    """What pip has to install to get this prime-core: its checkout, its wheel, or its version."""
    text = metadata.distribution("prime-core").read_text("direct_url.json")
    if text is None:
        return f"prime-core=={__version__}"
    url = str(json.loads(text)["url"])
    parts = urlsplit(url)
    return unquote(parts.path) if parts.scheme == "file" else f"prime-core @ {url}"


def create(
    root: Path,
    name: str,
    requirements: Sequence[str],
    *,
    base: Path | None = None,
    constraints: Path | None = None,
) -> VirtualEnvironment:
    """Make a virtual environment with this prime-core and the requirements in it.

    Args:
        root: the folder that holds all of them.
        name: the new one's name.
        requirements: what pip is asked for: names, specifiers, paths, URLs.
        base: the interpreter to make it with; default is the running one.
        constraints: a constraints file for pip.

    Raises:
        RunError: the name is taken or bad, or a step failed; what was made is removed again.
    """
    if not NAME.fullmatch(name):
        raise RunError(
            f"{name!r} is no name for a virtual environment",
            fix="use letters, digits, dots, dashes and underscores",
        )
    path = root.absolute() / name
    if path.exists():
        raise RunError(
            "there is something of that name already",
            where=str(path),
            fix=f"choose another name, or: prime-core env remove {name}",
        )
    root.mkdir(parents=True, exist_ok=True)
    try:
        return _fill(path, requirements, base or Path(sys.executable), constraints)
    except BaseException:
        shutil.rmtree(path, ignore_errors=True)
        raise


def _fill(
    path: Path, requirements: Sequence[str], base: Path, constraints: Path | None
) -> VirtualEnvironment:
    _run([str(base), "-m", "venv", str(path)], "making the virtual environment")
    python = str(path / "bin" / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check"]
    limits = [] if constraints is None else ["-c", str(constraints)]
    source = own_source()
    _run([*pip, "install", *limits, source, *requirements], "installing")
    found = _run([python, "-P", "-m", "prime_core", "plugins", "list", "--json"], "listing plugins")
    plugins = [f"{each['kind']}.{each['name']}" for each in json.loads(found)["plugins"]]
    version = "import platform; print(platform.python_version())"
    made = VirtualEnvironment(
        name=path.name,
        python=python,
        python_version=_run([python, "-c", version], "asking for its version").strip(),
        prime_core=source,
        requirements=tuple(requirements),
        constraints=None if constraints is None else str(constraints),
        plugins=tuple(sorted(plugins)),
        packages=tuple(_run([*pip, "freeze", "--all"], "recording packages").splitlines()),
    )
    temporary = path / f"{RECORD}.tmp"
    temporary.write_text(json.dumps(made.to_json(), indent=2) + "\n")
    temporary.replace(path / RECORD)
    return made


def _run(command: list[str], doing: str) -> str:
    """Standard output of a command; pip keeps the user's own configuration."""
    # A PYTHONPATH would make pip see packages of the running interpreter as installed.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, env=variables)
    except OSError as error:
        raise RunError(
            f"{doing} failed: {error.strerror}", where=command[0], fix="correct --python"
        ) from error
    if ended.returncode != 0:
        lines = (ended.stderr or ended.stdout).strip().splitlines()[-12:]
        raise RunError(
            "\n".join(
                [f"{doing} failed with code {ended.returncode}", *(f"  | {x}" for x in lines)]
            ),
            where=" ".join(command),
            fix="correct the requirements; pip uses your own index settings",
        )
    return ended.stdout


def existing(root: Path) -> list[VirtualEnvironment]:
    """All virtual environments under `root` that are whole, by name."""
    if not root.is_dir():
        return []
    return [_read(path / RECORD) for path in sorted(root.iterdir()) if (path / RECORD).is_file()]


def _read(record: Path) -> VirtualEnvironment:
    try:
        found = json.loads(record.read_text())
        lists = {key: tuple(found[key]) for key in ("requirements", "plugins", "packages")}
        return VirtualEnvironment(**{**found, **lists})
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(
            f"not the record of a virtual environment: {error}",
            where=str(record),
            fix=f"prime-core env remove {record.parent.name}, then create it again",
        ) from error


def remove(root: Path, name: str) -> Path:
    """Delete a virtual environment, whole or half made; returns its path.

    Raises:
        RunError: there is none of that name, or the folder isn't one.
    """
    path = root.absolute() / name
    if not NAME.fullmatch(name) or not (path / "pyvenv.cfg").is_file():
        names = ", ".join(each.name for each in existing(root)) or "none"
        raise RunError(
            f"there is no virtual environment {name!r}",
            where=str(root),
            fix=f"name one of: {names}",
        )
    shutil.rmtree(path)
    return path
