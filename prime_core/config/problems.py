"""Validation errors of pydantic in our words: where in the config, what, and the fix.

Called by `prime_core.config.load` for the run config and by `check_params` for each plugin. A
message never shows the value of a secret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from prime_core.config import fields, toml_text
from prime_core.config.locate import KeyPath, dotted

_WANTED = {
    "int": "an integer",
    "float": "a number",
    "finite_number": "a finite number",
    "string": "a string",
    "bool": "true or false",
    "path": "a path, as a string",
    "list": "an array",
    "tuple": "an array",
    "dict": "a table",
    "model": "a table",
    "none": "nothing",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


@dataclass(frozen=True, slots=True)
class Fault:
    """Something wrong at `loc`, a key path below whatever was validated, and its fix."""

    loc: KeyPath
    what: str
    fix: str


def faults(
    error: ValidationError,
    model: type[BaseModel],
    prefix: KeyPath = (),
    secret: Iterable[KeyPath] = (),
) -> list[Fault]:
    """One fault for each error.

    Args:
        prefix: key path of the validated table, for the words; not part of `loc`.
        secret: key paths below the table whose values no message may show.
    """
    hidden = list(secret)
    found = []
    for item in error.errors(include_url=False):
        loc = item["loc"]
        # an error of a whole table would show the values inside it
        dark = any(loc[: len(key)] == key or key[: len(loc)] == loc for key in hidden)
        what, fix = _words(item, model, loc, prefix + loc, dark)
        found.append(Fault(loc, what, fix))
    return found


def _words(
    item: Any, model: type[BaseModel], loc: KeyPath, path: KeyPath, secret: bool
) -> tuple[str, str]:
    kind, name = item["type"], dotted(path)
    shown = "" if secret else f", not {_shown(item['input'])}"
    if kind == "extra_forbidden":
        return unknown_key(model, loc, path)
    if kind == "missing" and isinstance(path[-1], int):
        return f"{dotted(path[:-1])} is too short", _expected(model, loc)
    if kind == "missing":
        return f"{name} is missing", f"add {dotted(path[-1:])} = ...: {_help(model, loc)}"
    if kind == "value_error":
        cause = item["ctx"]["error"]
        found_what, found_fix = getattr(cause, "what", None), getattr(cause, "fix", None)
        if found_what and found_fix:
            return f"{name}: {found_what}", str(found_fix)
        return f"{name}: {cause}", f"change it: {_help(model, loc)}"
    if kind in _BOUNDS:
        bound, word = _BOUNDS[kind]
        return f"{name} must be {word} {item['ctx'][bound]}{shown}", _expected(model, loc)
    if kind == "literal_error":
        near = _nearest(str(item["input"]), _choices(item)) if not secret else None
        fix = f'did you mean "{near}"?' if near else _expected(model, loc)
        return f"{name} must be {item['ctx']['expected']}{shown}", fix
    if kind == "string_pattern_mismatch":
        what = f"{name} must match {item['ctx']['pattern']}{shown}"
        return what, "use letters, digits, dots, dashes and underscores, at most 64"
    wanted = _WANTED.get(kind.removesuffix("_type").removesuffix("_parsing"))
    if wanted:
        return f"{name} must be {wanted}{shown}", _type_fix(wanted, model, loc, path)
    return f"{name}: {item['msg']}{shown}", _expected(model, loc)


def unknown_key(model: type[BaseModel], loc: KeyPath, path: KeyPath) -> tuple[str, str]:
    """What and fix for a key that doesn't exist: the nearest one, or the table it belongs to."""
    key, table = str(path[-1]), dotted(path[:-1])
    owner = fields.model_at(model, loc[:-1])
    valid = list(fields.fields(owner)) if owner else []
    what = f"unknown key {dotted(path)}"
    near = _nearest(key, valid) or (_by_help(key, owner) if owner else None)
    if near:
        return what, f"did you mean {near}?"
    homes = [name for name, section, _ in fields.walk(model) if key in fields.fields(section)]
    if homes and len(homes) <= 3:
        return what, f"{key} belongs to {' or '.join(f'[{home}]' for home in homes)}"
    if not valid:
        return what, f"remove it; {table or 'this table'} takes no keys"
    return what, f"remove it; valid keys of {table or 'a run config'}: {', '.join(valid)}"


def _nearest(key: str, valid: Iterable[str]) -> str | None:
    found = difflib.get_close_matches(key, list(valid), n=1, cutoff=0.6)
    return found[0] if found else None


def _by_help(key: str, owner: type[BaseModel]) -> str | None:
    """The key whose help begins with these words: learning_rate is lr."""
    words = key.replace("_", " ").replace("-", " ").lower()
    starts = {
        (info.description or "").lower()[: len(words)]: name
        for name, info in fields.fields(owner).items()
    }
    near = difflib.get_close_matches(words, starts, n=1, cutoff=0.85)
    return starts[near[0]] if near else None


def _choices(item: Any) -> list[str]:
    return [part.strip(" '") for part in item["ctx"]["expected"].replace(" or ", ",").split(",")]


def _field(model: type[BaseModel], loc: KeyPath) -> fields.FieldDoc | None:
    """The field at a place; for an element of an array, the array."""
    while loc and isinstance(loc[-1], int):
        loc = loc[:-1]
    info = fields.info_at(model, loc)
    return fields.describe(str(loc[-1]), info) if info is not None else None


def _help(model: type[BaseModel], loc: KeyPath) -> str:
    doc = _field(model, loc)
    return doc.help if doc is not None and doc.help else f"see {model.__name__}"


def _expected(model: type[BaseModel], loc: KeyPath) -> str:
    doc = _field(model, loc)
    if doc is None:
        return "change it to a value that the message allows"
    return f"use {doc.type} (default {doc.default}): {doc.help}"


def _type_fix(wanted: str, model: type[BaseModel], loc: KeyPath, path: KeyPath) -> str:
    info = fields.info_at(model, loc)
    if wanted == "an array" and info is not None and fields.section_of(info.annotation):
        return f"write a table of the array as [[{dotted(path)}]], with two brackets"
    if wanted == "a table":
        return f"write [{dotted(path)}] and its keys below"
    if wanted == "a string":
        return f"put the value in quotes; {_expected(model, loc)}"
    return _expected(model, loc)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an array"
    if isinstance(value, str | int | float | bool):
        text = toml_text.value(value)
        return text if len(text) <= 60 else text[:57] + "..."
    return f"a {type(value).__name__}"
