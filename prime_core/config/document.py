"""A run config before validation: its plain data, and where every value came from.

Read by `prime_core.config.load` and by `prime_core.run.configuration`, which needs `plugins.block`
before anything is validated. Problems are collected, never raised one by one.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from prime_core.api.errors import ConfigError, PrimeError
from prime_core.config.locate import KeyPath, dotted, locate, split_assignment

_POSITION = re.compile(r" \(at line (\d+), column \d+\)$|\(at end of document\)$")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from: a line of a file, the default, or `--set`."""

    kind: Literal["file", "default", "set"]
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        if self.kind == "file":
            return f"{self.file}:{self.line}"
        return "--set" if self.kind == "set" else "default"


@dataclass
class Document:
    """The data of a run config file with its overrides applied.

    Attributes:
        path: the file, as it was named.
        data: what tomllib returned, changed by the overrides.
        origins: key path -> origin, of every key that isn't a default.
        problems: what is wrong so far.
    """

    path: Path
    data: dict[str, Any] = field(default_factory=dict)
    origins: dict[KeyPath, Origin] = field(default_factory=dict)
    problems: list[PrimeError] = field(default_factory=list)

    def where(self, path: KeyPath) -> str:
        """Place of a key for a message: its own, or that of the nearest table that has one."""
        for end in range(len(path), 0, -1):
            origin = self.origins.get(path[:end])
            if origin is not None:
                is_set = origin.kind == "set"
                return f"--set {dotted(path[:end])}" if is_set else str(origin)
        return str(self.path)

    def origin(self, path: KeyPath) -> Origin:
        """Origin of a value; an override anywhere inside it wins, as it changed the value."""
        for other, origin in self.origins.items():
            if origin.kind == "set" and other[: len(path)] == path:
                return origin
        found = self.origins.get(path)
        return found if found is not None else Origin("default")


def read(path: Path, overrides: Sequence[str] = ()) -> Document:
    """Read a run config and apply `key=value` overrides, without validating anything.

    Raises:
        ConfigError: the file can't be read or isn't TOML.
    """
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([_syntax_problem(path, text, error)], source=str(path)) from error
    except RecursionError as error:
        problem = PrimeError(
            "arrays or tables are nested too deep", where=str(path), fix="flatten them"
        )
        raise ConfigError([problem], source=str(path)) from error
    document = Document(path, data)
    for key, line in locate(text.replace("\r\n", "\n")).items():
        document.origins[key] = Origin("file", str(path), line)
    for override in overrides:
        _override(document, override)
    return document


def _text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = path.read_bytes()[: error.start]
        problem = PrimeError(
            "the run config isn't UTF-8 text",
            where=f"{path}:{before.count(10) + 1}",
            fix="save the file as UTF-8",
        )
        raise ConfigError([problem], source=str(path)) from error
    except OSError as error:
        problem = PrimeError(
            f"the run config can't be read: {error.strerror or error}",
            where=str(path),
            fix=_other_file(path),
        )
        raise ConfigError([problem], source=str(path)) from error


def _other_file(path: Path) -> str:
    folder = path if path.is_dir() else path.parent
    try:
        present = [entry.name for entry in folder.iterdir() if entry.suffix == ".toml"]
    except OSError:
        return f"name a file that exists; the directory {folder} can't be read"
    near = difflib.get_close_matches(path.name, present, n=1) or sorted(present)[:1]
    if near:
        return f"name a file that exists, e.g. {folder / near[0]}"
    return f"name a file that exists; {folder} holds no .toml file"


def _syntax_problem(path: Path, text: str, error: tomllib.TOMLDecodeError) -> PrimeError:
    message = str(error)
    match = _POSITION.search(message)
    line = int(match[1]) if match and match[1] else text.count("\n") + 1
    reason = _POSITION.sub("", message).strip()
    return PrimeError(
        f"not valid TOML: {reason[:1].lower()}{reason[1:]}",
        where=f"{path}:{line}",
        fix="correct this line or the one before it; strings need quotes, tables [brackets]",
    )


def _override(document: Document, text: str) -> None:
    try:
        key, raw = split_assignment(text)
    except ValueError:
        # only the part before the equals sign is shown: a value may be a secret
        document.problems.append(
            PrimeError(
                "an override must be KEY=VALUE with a dotted key",
                where=f"--set {text.split('=')[0]}",
                fix="write it like --set trainer.lr=1e-6 or --set environments.0.weight=2",
            )
        )
        return
    path: KeyPath = ()
    node: Any = document.data
    for depth, part in enumerate(key):
        place = _place(node, part)
        if place is None:
            document.problems.append(_no_place(key, path, node))
            return
        path = (*path, place)
        last = depth == len(key) - 1
        if last:
            _put(node, place, _value(raw))
        else:
            if _absent(node, place):
                _put(node, place, [] if key[depth + 1].isdigit() else {})
            node = node[place]
        if last or path not in document.origins:
            document.origins[path] = Origin("set")
    for old in [other for other in document.origins if other[: len(path)] == path]:
        if old != path:
            del document.origins[old]


def _place(node: Any, part: str) -> str | int | None:
    """The index or key that `part` means in a container; None where it has no place."""
    if isinstance(node, dict):
        return part
    if isinstance(node, list) and part.isdigit() and int(part) <= len(node):
        return int(part)
    return None


def _absent(node: Any, place: str | int) -> bool:
    if isinstance(node, dict):
        return place not in node
    assert isinstance(place, int)
    return place == len(node)


def _put(node: Any, place: str | int, item: Any) -> None:
    if isinstance(node, list) and place == len(node):
        node.append(item)
    else:
        node[place] = item


def _no_place(key: tuple[str, ...], path: KeyPath, node: Any) -> PrimeError:
    if isinstance(node, list):
        what = f"{dotted(path)} has {len(node)} elements and no place {key[len(path)]}"
        fix = f"use an index from 0 to {len(node)}; {len(node)} appends"
    else:
        what = f"{dotted(path)} is a value, not a table, so it has no key {key[len(path)]}"
        fix = f"set {dotted(path)} itself"
    return PrimeError(what, where=f"--set {dotted(key)}", fix=fix)


def _value(raw: str) -> Any:
    """A TOML value, or the bare text: a shell eats quotes."""
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError:
        return raw
    return parsed["value"] if set(parsed) == {"value"} else raw
