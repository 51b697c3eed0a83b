"""The distribution under check, as files: source, wheel, metadata. Imports nothing of it.

Made by `prime_core.check.staging`; static rules read it. Invariant: reading it never fails for what
the files hold; what can't be read is kept as a reason.
"""

from __future__ import annotations

import email.message
import email.parser
import hashlib
import tomllib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from prime_core.api import FormatError
from prime_core.check.checks_file import ChecksFile
from prime_core.check.needs import in_the_way
from prime_core.check.plain_files import read_plain

SOURCE_LIMIT = 1 << 20  # bytes of a source file that a static rule reads
SKIPPED = frozenset(
    {"__pycache__", ".git", ".venv", "venv", "node_modules", "dist", "build", ".mypy_cache",
     ".ruff_cache", ".pytest_cache", ".hypothesis", ".tox", ".nox"}
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry point of group `prime_core`."""

    kind: str
    name: str
    module: str

    @property
    def label(self) -> str:
        """`<kind>.<name>`, or the bare name where it has no kind."""
        return f"{self.kind}.{self.name}" if self.kind else self.name


@dataclass(frozen=True)
class Distribution:
    """What is checked.

    Attributes:
        target: as it was asked for.
        source: the source folder, None where only a wheel or an installation is there.
        site: the folder that holds its modules and metadata; None where no wheel could be made.
        build_error: why there is no wheel; "" where there is one.
        wheel_names: names of all files of the wheel (or of the installation's RECORD).
        wheel_digest: SHA-256 over names and contents of the wheel's files; "" without a wheel.
        checks: its `checks.toml`; the default where that can't be read.
        checks_error: why it can't be read.
        wheel_refusals: files of the wheel that weren't unpacked, with reasons.
        target_is_installed: `site` is where pip installed it, beside others.
        wheel: the file itself; None where there is none.
    """

    target: str
    source: Path | None
    site: Path | None
    build_error: str = ""
    wheel_names: tuple[str, ...] = ()
    wheel_digest: str = ""
    checks: ChecksFile = ChecksFile()  # noqa: RUF009 - frozen
    checks_error: str = ""
    wheel_refusals: tuple[str, ...] = ()
    target_is_installed: bool = False
    wheel: Path | None = None

    @cached_property
    def pyproject(self) -> dict[str, Any]:
        """The parsed pyproject.toml; {} where there is none or it can't be read."""
        return self._parsed[0]

    @cached_property
    def pyproject_error(self) -> str:
        """Why pyproject.toml can't be read; "" where it can or there is no source."""
        return self._parsed[1]

    @cached_property
    def _parsed(self) -> tuple[dict[str, Any], str]:
        if self.source is None:
            return {}, ""
        try:
            text = read_plain(self.source / "pyproject.toml", SOURCE_LIMIT).decode("utf-8")
            return tomllib.loads(text), ""
        except (OSError, FormatError, ValueError, RecursionError) as error:
            return {}, str(error)

    @property
    def project(self) -> dict[str, Any]:
        """The [project] table; {} where there is none."""
        found = self.pyproject.get("project", {})
        return found if isinstance(found, dict) else {}

    @cached_property
    def metadata(self) -> email.message.Message:
        """METADATA of the wheel; empty where there is none."""
        text = self._info_file("METADATA")
        return email.parser.Parser().parsestr(text)

    @cached_property
    def readme(self) -> str:
        """The README's text, from the source or the metadata."""
        declared = self.project.get("readme")
        name = declared.get("file", "") if isinstance(declared, dict) else declared
        if self.source is not None and isinstance(name, str) and name:
            return read_source(self.source / name)
        body = self.metadata.get_payload()
        return body if isinstance(body, str) else ""

    @property
    def name(self) -> str:
        """The distribution's name, from metadata, else pyproject, else the target."""
        return str(self.metadata["Name"] or self.project.get("name") or self.target)

    @property
    def version(self) -> str:
        """The version; "" where it's unknown."""
        return str(self.metadata["Version"] or self.project.get("version") or "")

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Entry points of group `prime_core`, from the wheel, else from pyproject."""
        found = self._entry_table()
        made = []
        for key, module in sorted(found.items()):
            kind, dot, name = key.partition(".")
            made.append(Entry(kind if dot else "", name if dot else key, str(module).strip()))
        return tuple(made)

    @property
    def entry_groups(self) -> tuple[str, ...]:
        """Groups of entry points that it has, of whatever framework."""
        return tuple(sorted(self._entry_groups))

    def _entry_table(self) -> dict[str, str]:
        return self._entry_groups.get("prime_core", {})

    @cached_property
    def _entry_groups(self) -> dict[str, dict[str, str]]:
        text = self._info_file("entry_points.txt")
        if text:
            import configparser

            parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
            parser.optionxform = str  # type: ignore[assignment, method-assign]
            try:
                parser.read_string(text)
            except configparser.Error:
                return {}
            return {name: dict(parser[name]) for name in parser.sections()}
        groups = self.project.get("entry-points", {})
        if not isinstance(groups, dict):
            return {}
        return {name: table for name, table in groups.items() if isinstance(table, dict)}

    @property
    def modules(self) -> tuple[str, ...]:
        """The modules that the entry points name, each once."""
        return tuple(dict.fromkeys(entry.module for entry in self.entries))

    @property
    def module_name(self) -> str:
        """The one top-level module that a distribution of this name holds."""
        return canonicalize_name(self.name).replace("-", "_")

    @cached_property
    def in_the_way(self) -> str:
        """What its module would hide, as a noun; "" where nothing has the name."""
        return in_the_way(canonicalize_name(self.name), self.module_name)

    @cached_property
    def foreign_modules(self) -> tuple[str, ...]:
        """Top-level names of the wheel that are neither its module nor its metadata."""
        if self.source is None and self.site is not None and self.target_is_installed:
            return ()  # the site is shared with everything else
        tops = {name.partition("/")[0] for name in self.wheel_names}
        own = (self.module_name, f"{self.module_name}.py")
        return tuple(
            sorted(top for top in tops if top not in own and not top.endswith(".dist-info"))
        )

    @cached_property
    def requirements(self) -> tuple[Requirement | str, ...]:
        """Requirements of the metadata, extras left out; a text where one can't be read."""
        texts = self.metadata.get_all("Requires-Dist")
        declared = texts if texts is not None else self.project.get("dependencies", [])
        made: list[Requirement | str] = []
        for text in declared if isinstance(declared, list) else []:
            try:
                requirement = Requirement(str(text))
            except InvalidRequirement:
                made.append(str(text))
                continue
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                made.append(requirement)
        return tuple(made)

    def python_files(self) -> list[Path]:
        """The Python files of its module, of the source where there is one."""
        root = self.source or self.site
        if root is None:
            return []
        if self.source is None:
            return sorted(
                root / name for name in self.wheel_names
                if name.endswith(".py") and (root / name).is_file()
            )  # fmt: skip
        package = root / self.module_name
        folder = package if package.is_dir() else root / "src" / self.module_name
        return source_files(folder, ".py") if folder.is_dir() else []

    def _info_file(self, name: str) -> str:
        if self.site is None:
            return ""
        for path in self.wheel_names:
            folder, _, file = path.rpartition("/")
            if file == name and folder.endswith(".dist-info") and "/" not in folder:
                return read_source(self.site / path)
        return ""


def read_source(path: Path) -> str:
    """The beginning of a text file; "" where it can't be read."""
    try:
        return read_plain(path, SOURCE_LIMIT, cut=True).decode("utf-8", "replace")
    except (OSError, FormatError, ValueError):
        return ""


def source_files(folder: Path, suffix: str = "") -> list[Path]:
    """Files below a folder that belong to the source, sorted; links are left out."""
    found: list[Path] = []
    stack = [folder]
    while stack:
        for path in sorted(stack.pop().iterdir()):
            if path.is_symlink():
                continue
            if path.is_dir():
                if path.name not in SKIPPED and not path.name.endswith(".egg-info"):
                    stack.append(path)
            elif path.name.endswith(suffix) and path.is_file():
                found.append(path)
    return sorted(found)


def files_digest(files: list[tuple[str, bytes]]) -> str:
    """SHA-256 over names and contents, sorted by name."""
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{len(name.encode())} {len(content)} ".encode() + name.encode() + content)
    return digest.hexdigest()
