"""TOML text of plain values; tomllib reads it back to an equal value.

Called by the writer of resolved configs and by messages that show a value.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from prime_core.api.errors import ConfigError, PrimeError


def string(text: str) -> str:
    """A basic string on one line."""
    # JSON's escapes are TOML's, but TOML wants DEL escaped as well
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def key(name: str) -> str:
    """A key, quoted where it must be."""
    bare = name != "" and all(part.isascii() and (part.isalnum() or part in "_-") for part in name)
    return name if bare else string(name)


def value(item: object) -> str:
    """Any TOML value on one line.

    Raises:
        ConfigError: TOML has no such value, e.g. None inside a plugin's parameters.
    """
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, str | PurePath):
        return string(str(item))
    if isinstance(item, datetime.datetime | datetime.date | datetime.time):
        return item.isoformat()
    if isinstance(item, Mapping):
        inside = ", ".join(f"{key(str(name))} = {value(part)}" for name, part in item.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(item, Sequence):
        return "[" + ", ".join(value(part) for part in item) + "]"
    raise ConfigError(
        [
            PrimeError(
                f"a value of type {type(item).__name__} can't be written as TOML",
                fix="use strings, numbers, booleans, arrays and tables only",
            )
        ]
    )
