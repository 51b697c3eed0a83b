"""Walks over a validated run config: its plugin choices, and its leaves by key path.

Called by everything in `prime_core.config` that looks at values one by one; keys are the file's
(`with`, `async`), never Python's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from prime_core.config.locate import KeyPath
from prime_core.config.sections import PluginChoice, RunConfig


def choices(config: RunConfig) -> Iterator[tuple[KeyPath, PluginChoice]]:
    """Every plugin choice of a config with its key path, in file order."""
    yield from _choices(config, ())


def _choices(value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, PluginChoice]]:
    if isinstance(value, PluginChoice):
        yield path, value
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            yield from _choices(getattr(value, name), (*path, info.alias or name))
    elif isinstance(value, list):
        for index, part in enumerate(value):
            yield from _choices(part, (*path, index))


def flatten(config: BaseModel) -> dict[KeyPath, Any]:
    """Key path -> value of every leaf: scalars, arrays without tables of ours, empty tables."""
    leaves: dict[KeyPath, Any] = {}
    _flatten(config, (), leaves)
    return leaves


def _flatten(value: Any, path: KeyPath, leaves: dict[KeyPath, Any]) -> None:
    if isinstance(value, BaseModel):
        for name, info in type(value).model_fields.items():
            _flatten(getattr(value, name), (*path, info.alias or name), leaves)
    elif isinstance(value, list) and value and isinstance(value[0], BaseModel):
        for index, part in enumerate(value):
            _flatten(part, (*path, index), leaves)
    elif isinstance(value, dict) and value:
        for name, part in value.items():
            _flatten(part, (*path, name), leaves)
    else:
        leaves[path] = value
