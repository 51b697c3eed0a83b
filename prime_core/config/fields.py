"""What every key of a run config or of a plugin's parameters is: type, default, help.

Called by the messages about wrong keys, `config explain` and the reference page. It reads pydantic
models and never instances, so that it works on a config that doesn't validate.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from prime_core.api.errors import ConfigError
from prime_core.config import toml_text
from prime_core.config.locate import KeyPath

_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", Path: "path"}
_LIMITS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One key: its type in words with its limits, its default as TOML, its help."""

    name: str
    type: str
    default: str
    required: bool
    help: str


def field_name(name: str, info: FieldInfo) -> str:
    """The key in a file: the alias where there is one."""
    return info.alias or name


def fields(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Key in a file -> field."""
    return {field_name(name, info): info for name, info in model.model_fields.items()}


def describe(key: str, info: FieldInfo) -> FieldDoc:
    """The documentation of one field."""
    limits = [
        f"{sign} {getattr(rule, name)}"
        for rule in info.metadata
        for name, sign in _LIMITS.items()
        if getattr(rule, name, None) is not None
    ]
    words = ", ".join([type_words(info.annotation), *limits])
    return FieldDoc(key, words, _default(info), info.is_required(), info.description or "")


def type_words(annotation: Any) -> str:
    """A type in the words of the reference page."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if annotation in _NAMES:
        return _NAMES[annotation]
    if annotation in (SecretStr, SecretBytes):
        return "secret (env:NAME)"
    if origin is Annotated:
        return type_words(parts[0])
    if origin is Literal:
        return " or ".join(toml_text.value(part) for part in parts)
    if origin in (Union, types.UnionType):
        return " or ".join(type_words(part) for part in parts if part is not type(None))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return f"table of {type_words(parts[1])}" if parts and parts[1] is not Any else "table"
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return f"array of {type_words(parts[0])}"
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return "table"
    return getattr(annotation, "__name__", None) or str(annotation)


def section_of(annotation: Any) -> type[BaseModel] | None:
    """The model inside an annotation: itself, of an optional, of an array or of a table."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    for part in reversed(get_args(annotation)):
        found = section_of(part)
        if found is not None:
            return found
    return None


def model_at(root: type[BaseModel], path: KeyPath) -> type[BaseModel] | None:
    """The model of the table at a key path; None inside a plugin's `with` or where none is."""
    model: type[BaseModel] | None = root
    steps = iter(path)
    for part in steps:
        if model is None or not isinstance(part, str):
            return None
        info = fields(model).get(part)
        if info is None:
            return None
        model = section_of(info.annotation)
        if get_origin(info.annotation) in (list, dict):
            next(steps, None)  # the element's index or name
    return model


def info_at(root: type[BaseModel], path: KeyPath) -> FieldInfo | None:
    """The field at a key path, or None."""
    model = model_at(root, path[:-1])
    return fields(model).get(str(path[-1])) if model is not None and path else None


def walk(root: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, type[BaseModel], bool]]:
    """Every section as (dotted name, model, whether it repeats), in file order, depth first."""
    for key, info in fields(root).items():
        model = section_of(info.annotation)
        if model is None:
            continue
        kind = get_origin(info.annotation)
        name = f"{prefix}{key}" + (".NAME" if kind is dict else "")
        yield name, model, kind is list
        yield from walk(model, f"{name}.")


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    if info.default_factory is not None and info.default_factory_takes_validated_data:
        return "computed"
    value = info.get_default(call_default_factory=True)
    if value is None or value is PydanticUndefined:
        return "unset"
    if isinstance(value, BaseModel):
        return "its keys' defaults"
    if isinstance(value, SecretStr | SecretBytes):
        return "secret"
    try:
        return toml_text.value(value)
    except ConfigError:
        return repr(value)  # of a plugin's own type
