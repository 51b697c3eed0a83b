"""The resolved config as TOML: every value, each with its origin as a trailing comment.

Called by `train` for `<run>/run.toml` and by its dry run. Loading the text gives an equal
RunConfig; no secret can be in it (see `prime_core.config.secrets`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from prime_core.api.errors import ConfigError, PrimeError
from prime_core.config import secrets, toml_text
from prime_core.config.load import LoadedConfig
from prime_core.config.locate import KeyPath, dotted
from prime_core.config.walk import choices


def write_resolved(loaded: LoadedConfig, path: Path) -> None:
    """Write the resolved config whole: to a temporary name, flushed to disk, then renamed.

    Raises:
        ConfigError: a value that looks like a secret, or one that TOML can't hold.
    """
    text = render_resolved(loaded)
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    with scratch.open("w", encoding="utf-8", newline="\n") as stream:
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(path)


def render_resolved(loaded: LoadedConfig) -> str:
    """The text that `write_resolved` writes; errors as there."""
    _refuse_secrets(loaded)
    lines = [
        f"# Resolved from {_one_line(str(loaded.source))}; after each value stands its origin.",
        *_table(loaded, loaded.config, ()),
    ]
    return "\n".join(lines) + "\n"


def _refuse_secrets(loaded: LoadedConfig) -> None:
    # parameters whose model was checked hold references only; of the others, names must do
    found = [
        (path, fault)
        for path, choice in choices(loaded.config)
        if path not in loaded.checked
        for fault in secrets.telltale_secrets(choice.params)
    ]
    if found:
        raise ConfigError(
            [
                PrimeError(fault.what, where=dotted((*path, "with", *fault.loc)), fix=fault.fix)
                for path, fault in found
            ],
            source=str(loaded.source),
        )


def _table(loaded: LoadedConfig, table: BaseModel, path: KeyPath) -> Iterator[str]:
    """The lines of a section: its own values first, as TOML wants it, then its tables."""
    items = {
        info.alias or name: getattr(table, name) for name, info in type(table).model_fields.items()
    }
    for key, value in items.items():
        if not _is_tables(value):
            yield _line(loaded, (*path, key), value)
    for key, value in items.items():
        inside = (*path, key)
        if isinstance(value, BaseModel):
            yield from _headed(loaded, value, inside, "[{}]")
        elif isinstance(value, list) and _is_tables(value):
            for index, part in enumerate(value):
                yield from _headed(loaded, part, (*inside, index), "[[{}]]")
        elif _is_tables(value):
            yield from _mapping(loaded, value, inside)


def _headed(loaded: LoadedConfig, table: BaseModel, path: KeyPath, header: str) -> Iterator[str]:
    yield ""
    yield header.format(_name(path))
    yield from _table(loaded, table, path)


def _mapping(loaded: LoadedConfig, table: Mapping[str, Any], path: KeyPath) -> Iterator[str]:
    yield ""
    yield f"[{_name(path)}]"
    for key, value in table.items():
        if not _is_tables(value):
            yield _line(loaded, (*path, key), value)
    for key, value in table.items():
        if isinstance(value, BaseModel):
            yield from _headed(loaded, value, (*path, key), "[{}]")
        elif _is_tables(value):
            yield from _mapping(loaded, value, (*path, key))


def _is_tables(value: object) -> bool:
    """Whether a value becomes tables with headers rather than one line."""
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], BaseModel)
    return isinstance(value, BaseModel) or (isinstance(value, Mapping) and bool(value))


def _name(path: KeyPath) -> str:
    """A header's key: the index of an array of tables isn't written, TOML counts by itself."""
    return dotted(tuple(part for part in path if isinstance(part, str)))


def _line(loaded: LoadedConfig, path: KeyPath, value: object) -> str:
    key = toml_text.key(str(path[-1]))
    origin = _one_line(str(loaded.origins.get(dotted(path), "default")))
    if value is None and "with" not in path[:-1]:
        return f"# {key} is unset  # {origin}"
    return f"{key} = {toml_text.value(value)}  # {origin}"


def _one_line(text: str) -> str:
    """A comment ends with its line, so a file's odd name must not."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
