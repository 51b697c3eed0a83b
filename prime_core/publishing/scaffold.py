"""Writes a new distribution from the templates: what `prime-core new` does.

The result passes `prime-core check` at bronze, and its own tests, before a line of it is changed.
Files are written into a folder of another name that is renamed at the end, so that a failure
leaves nothing behind.
"""

from __future__ import annotations

import datetime
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression
from packaging.version import Version

from prime_core import __version__
from prime_core.api.errors import FormatError, StoreError
from prime_core.hub.describe import select_text
from prime_core.publishing.names import PREFIXES, Names, names_of

PLUGIN_KINDS = tuple(kind for kind in PREFIXES if kind not in ("environment", "verifier"))
LICENCES = ("Apache-2.0", "MIT")  # those whose text is at hand
_TOKEN = re.compile(r"@@([A-Za-z_0-9]+)@@")

# template -> place in the new distribution, by kind; {module} and {name} are filled in
_COMMON = {
    "common/pyproject.toml": "pyproject.toml",
    "common/README.md": "README.md",
    "common/gitignore": ".gitignore",
    "common/checks.toml": "checks.toml",
    "common/check.yml": ".github/workflows/check.yml",
}
_MODULES: dict[str, tuple[str, ...]] = {
    "environment": ("__init__.py", "environment.py", "tasks.jsonl"),
    "verifier": ("__init__.py", "verifier.py", "cases.jsonl"),
    "reward": ("__init__.py", "reward.py"),
    "length_budget": ("__init__.py", "budget.py"),
    "data_filter": ("__init__.py", "data_filter.py"),
    "advantage": ("__init__.py", "advantage.py"),
    "tracker": ("__init__.py", "tracker.py"),
    "observer": ("__init__.py",),
}


@dataclass(frozen=True, slots=True)
class Wish:
    """What somebody wants to be made.

    Attributes:
        kind: kind of plugin, one of `PREFIXES`.
        name: as typed.
        summary: one line; "" for a default.
        author: a name; "" for "The authors of ...".
        licence: SPDX id, one of `LICENCES`.
    """

    kind: str
    name: str
    summary: str = ""
    author: str = ""
    licence: str = "Apache-2.0"


def providers(kind: str, name: str) -> list[str]:
    """Installed distributions, with versions, that have a plugin of this kind and name."""
    from prime_core.hub import Hub

    plugin = names_of(kind, name).plugin
    return [
        f"{record.distribution} {record.version}"
        for record in Hub.discover().records()
        if (record.kind, record.name) == (kind, plugin)
    ]


def create(wish: Wish, into: Path) -> Path:
    """Write the distribution into a new folder of its own name below `into`; returns the folder.

    Raises:
        FormatError: a name, summary, author or licence that can't be used.
        StoreError: the folder exists, or can't be written.
    """
    names = names_of(wish.kind, wish.name)
    target = into / names.distribution
    values = _values(wish, names)
    if target.exists() or target.is_symlink():
        raise StoreError(
            "exists already, and nothing is overwritten",
            where=str(target),
            fix="choose another name, or another folder with --into",
        )
    try:
        into.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(prefix=f".{names.distribution}-", dir=into))
        try:
            for path, text in rendered(wish, names, values).items():
                place = temporary / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_text(text, encoding="utf-8", newline="\n")
            temporary.chmod(0o777 & ~_umask())
            os.rename(temporary, target)  # noqa: PTH104  fails on a folder that isn't empty
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError as error:
        raise StoreError(
            f"can't be written: {error.strerror}", where=str(target), fix="choose another --into"
        ) from error
    return target


def rendered(wish: Wish, names: Names, values: Mapping[str, str]) -> dict[str, str]:
    """The new distribution's files by path."""
    made = {place: _fill(template, values) for template, place in _COMMON.items()}
    for name in _MODULES[wish.kind]:
        folder = f"{names.module}/data" if name == "tasks.jsonl" else names.module
        made[f"{folder}/{name}"] = _fill(f"{wish.kind}/{name}", values)
    made[f"{names.module}/py.typed"] = ""
    tests = names.module.removeprefix("prime_")
    made[f"tests/test_{tests}.py"] = _fill(f"{wish.kind}/test.py", values)
    made["LICENSE"] = _licence_text(wish.licence, values)
    return made


def _values(wish: Wish, names: Names) -> dict[str, str]:
    """What stands for each token of the templates."""
    summary = _line(wish.summary or f"The {wish.kind.replace('_', ' ')} {names.plugin}", "summary")
    author = _line(wish.author or f"The authors of {names.distribution}", "author")
    try:
        licence = canonicalize_license_expression(wish.licence)
    except InvalidLicenseExpression as error:
        raise FormatError(f"{wish.licence!r} is no SPDX licence: {error}") from error
    if licence not in LICENCES:
        raise FormatError(
            f"the text of licence {licence} isn't at hand",
            fix=f"use one of {', '.join(LICENCES)}, then change pyproject.toml and LICENSE",
        )
    own = Version(__version__)
    values = {
        "kind": wish.kind,
        "name": names.plugin,
        "distribution": names.distribution,
        "module": names.module,
        "Class": names.class_name,
        # A JSON text is a TOML basic string and a Python literal at once.
        "summary": json.dumps(summary, ensure_ascii=False),
        "summary_plain": summary,
        "author": json.dumps(author, ensure_ascii=False),
        "author_plain": author,
        "licence": licence,
        "api_range": f">={own.major}.{own.minor},<{own.major + 1}",
        "year": str(datetime.datetime.now(datetime.UTC).year),
        "select": select_text(wish.kind, names.plugin),
    }
    if wish.kind == "environment":
        tasks = _template("environment/tasks.jsonl").encode()
        values["tasks_sha256"] = hashlib.sha256(tasks).hexdigest()
    values["cases"] = _fill("verifier/cases.toml", values) if wish.kind == "verifier" else ""
    values["guide"] = _fill(f"{wish.kind}/guide.md", values).rstrip()
    return values


def _line(text: str, what: str) -> str:
    line = " ".join(text.split())
    if len(line) > 200 or any(unicodedata.category(each)[0] == "C" for each in line):
        raise FormatError(
            f"{what} must be one line of up to 200 printable characters", fix=f"shorten the {what}"
        )
    return line


def _fill(template: str, values: Mapping[str, str]) -> str:
    return _TOKEN.sub(lambda found: values[found[1]], _template(template))


def _template(name: str) -> str:
    folder = files("prime_core.publishing").joinpath("templates")
    return folder.joinpath(f"{name}.txt").read_text(encoding="utf-8")


def _licence_text(licence: str, values: Mapping[str, str]) -> str:
    if licence == "MIT":
        return _fill("common/MIT", values)
    # Apache-2.0 is prime-core's own licence, so its text is installed beside it.
    own = importlib.metadata.distribution("prime-core")
    text = own.read_text("licenses/LICENSE")
    if text is None:
        raise FormatError("prime-core is installed without its licence's text", fix="use MIT")
    return text


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
