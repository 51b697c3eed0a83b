"""A jailed child: a new virtual environment with the wheel and with what it requires, no more.

Started as `python -m prime_core.check.clean_install REQUEST RESULT` by `prime_core.check.lab`. pip
installs the wheel; its requirements are linked from where they are installed, without an index.
Invariant: a distribution that neither the wheel nor its requirements require can't be imported.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from packaging.utils import canonicalize_name

from prime_core.check.needs import needs, providers

BESIDE = "beside"  # folder of the links
LINE = 500  # characters of pip's words that are kept


class Unlinkable(Exception):
    """A distribution is installed from a source folder in which its module can't be found."""


def parts(distribution: importlib.metadata.Distribution) -> Iterator[tuple[str, Path]]:
    """(name, place) of everything that a distribution has at the top of its site.

    Raises:
        Unlinkable: of one without a list of files, or in editable mode without its module.
    """
    if distribution.files is None:
        raise Unlinkable(f"{distribution.name} doesn't say which files it has (no RECORD)")
    root = Path(str(distribution.locate_file("")))
    names = {file.parts[0] for file in distribution.files if file.parts[0] != ".."}
    for name in sorted(names):
        if not name.endswith(".pth") and name != "__pycache__":
            yield name, root / name
    described = json.loads(distribution.read_text("direct_url.json") or "{}")
    if described.get("dir_info", {}).get("editable"):
        folder = Path(unquote(urlsplit(described.get("url", "")).path))
        module = canonicalize_name(distribution.name).replace("-", "_")
        yield module, _developed(folder, module, distribution.name)


def _developed(folder: Path, module: str, name: str) -> Path:
    """The module of a distribution that is installed from its source; never what lies beside."""
    for place in (folder / module, folder / "src" / module):
        if place.is_dir():
            return place
    raise Unlinkable(f"{name} is installed from {folder}, where no {module} is")


def link(distributions: Iterable[importlib.metadata.Distribution], folder: Path) -> None:
    """Links to all their parts; a folder that several share is made, and its entries are linked.

    Raises:
        Unlinkable: of a distribution in editable mode, where its module isn't found.
    """
    for distribution in distributions:
        for name, place in parts(distribution):
            _link(place, folder / name)


def _link(place: Path, at: Path) -> None:
    if not place.exists() or at.resolve() == place.resolve():
        return
    if not at.exists():
        at.symlink_to(place)
    elif at.is_dir() and place.is_dir():
        if at.is_symlink():
            first = at.resolve()
            at.unlink()
            at.mkdir()
            for each in first.iterdir():
                _link(each, at / each.name)
        for each in place.iterdir():
            _link(each, at / each.name)


def install(wheel: str, folder: Path) -> str:
    """Let pip install the wheel into the environment; returns its complaint, "" where it did."""
    command = [sys.executable, "-I", "-m", "pip", "--isolated", "--disable-pip-version-check",
               "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-input",
               "--no-index", "--no-deps", "--no-compile", "--no-cache-dir", wheel]  # fmt: skip
    # PYTHONPATH names the unpacked wheel, which pip would take for an installation.
    variables = {**os.environ, "PIP_CONFIG_FILE": os.devnull, "PYTHONPATH": ""}
    done = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        errors="replace", check=False,
    )  # fmt: skip
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    return " ".join(said)[:LINE] or f"it ended with code {done.returncode}"


def main(arguments: list[str]) -> None:
    """Answer one request: a wheel, the requirements of its metadata, plugins that it may use."""
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    found: dict[str, Any] = {"unmet": [], "pip": "", "required": 0}
    need = needs(request["requirements"], request["name"])
    found["unmet"], found["required"] = need.unmet, len(need.found)
    if importlib.util.find_spec("pip") is None:
        found["unmet"] = ["this Python has no pip; python -m ensurepip gives it one"]
    if not found["unmet"]:
        beside = need.found | needs(sorted(providers(request["selected"])), "the check").found
        beside.pop(request["name"], None)
        venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
        (folder / BESIDE).mkdir()
        try:
            link(beside.values(), folder / BESIDE)
        except Unlinkable as error:
            found["unmet"] = [str(error)]
        site = next((folder / "lib").glob("python*")) / "site-packages"
        (site / "beside.pth").write_text(f"{folder / BESIDE}\n", encoding="utf-8")
        found["pip"] = install(request["wheel"], folder)
    Path(arguments[1]).write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
