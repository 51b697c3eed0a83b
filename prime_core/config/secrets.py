"""Secrets of plugins: a run config names the environment variable, never the secret.

A parameter that a plugin declares as pydantic SecretStr takes `env:NAME` and nothing else. So no
config, resolved config, message or metric can hold a secret (invariant 10); `resolve` reads the
variable when the plugin is made, in the process that makes it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, SecretBytes, SecretStr

from prime_core.config import fields
from prime_core.config.locate import KeyPath, dotted
from prime_core.config.problems import Fault

_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*")
# for parameters whose types aren't known here, e.g. of an environment under another interpreter
_TELLTALE = re.compile(
    r"(^|[_-])(api[_-]?key|secret|password|passwd|passphrase|credentials?"
    r"|(private|access|secret)[_-]?key|(access|auth|api|bearer|hub|hf)[_-]?token)$|^token$",
    re.IGNORECASE,
)


def is_reference(value: object) -> bool:
    """Whether a value is `env:NAME`."""
    return isinstance(value, str) and _REFERENCE.fullmatch(value) is not None


def secret_paths(model: type[BaseModel], values: Mapping[str, Any]) -> list[KeyPath]:
    """Key paths of the given values that the model declares secret, nested ones included."""
    return list(_secret_paths(model, values, ()))


def _secret_paths(model: type[BaseModel], values: Any, path: KeyPath) -> Iterator[KeyPath]:
    if not isinstance(values, Mapping):
        return
    for key, info in fields.fields(model).items():
        # by alias or by name, as a plugin's model may allow both
        for name in {key, *(n for n, each in model.model_fields.items() if each is info)}:
            if name not in values:
                continue
            if _mentions_secret(info.annotation):
                yield (*path, name)
            else:
                inner = fields.section_of(info.annotation)
                for place, part in _parts(values[name]) if inner else ():
                    assert inner is not None
                    yield from _secret_paths(inner, part, (*path, name, *place))


def _parts(value: Any) -> Iterator[tuple[KeyPath, Any]]:
    """The value itself, and its elements where it's an array or a table of tables."""
    yield (), value
    if isinstance(value, list):
        yield from (((index,), part) for index, part in enumerate(value))
    elif isinstance(value, Mapping):
        yield from (((str(name),), part) for name, part in value.items())


def _mentions_secret(annotation: Any) -> bool:
    if annotation in (SecretStr, SecretBytes):
        return True
    return any(_mentions_secret(part) for part in getattr(annotation, "__args__", ()))


def literal_secrets(model: type[BaseModel], values: Mapping[str, Any]) -> list[Fault]:
    """A fault for every secret that stands in the config instead of a reference."""
    return [
        _literal(path)
        for path in secret_paths(model, values)
        if not all(is_reference(leaf) for leaf in _leaves(_at(values, path)))
    ]


def telltale_secrets(values: Any, path: KeyPath = ()) -> list[Fault]:
    """A fault for every literal under a name that looks secret, where no model says more."""
    found = []
    items: Any = values.items() if isinstance(values, Mapping) else ()
    items = enumerate(values) if isinstance(values, list) else items
    for name, part in items:
        here = (*path, name)
        if isinstance(name, str) and isinstance(part, str) and _TELLTALE.search(name):
            if not is_reference(part):
                found.append(_literal(here))
        else:
            found += telltale_secrets(part, here)
    return found


def _literal(path: KeyPath) -> Fault:
    name = re.sub(r"\W", "_", str(path[-1])).upper()
    return Fault(
        path,
        f"{dotted(path)} is a secret, which must not stand in a run config",
        f'export it in an environment variable and write {path[-1]} = "env:{name}"',
    )


def unset_references(model: type[BaseModel], values: Mapping[str, Any]) -> list[Fault]:
    """A fault for every reference to a variable that isn't set in this process."""
    return [
        Fault(
            path,
            f"{dotted(path)} names the environment variable {name}, which isn't set",
            f"export {name} before the command runs",
        )
        for path in secret_paths(model, values)
        for name in (leaf[4:] for leaf in _leaves(_at(values, path)) if is_reference(leaf))
        if name not in os.environ
    ]


def resolve(model: type[BaseModel], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with every `env:NAME` of a secret replaced by the variable's value.

    Variables that aren't set stay references, so that `unset_references` can name them.
    """
    secret = set(secret_paths(model, values))
    return {str(name): _resolved(part, (name,), secret) for name, part in values.items()}


def _resolved(value: Any, path: KeyPath, secret: set[KeyPath]) -> Any:
    if is_reference(value) and any(path[: len(key)] == key for key in secret):
        return os.environ.get(value[4:], value)
    if isinstance(value, Mapping):
        return {name: _resolved(part, (*path, name), secret) for name, part in value.items()}
    if isinstance(value, list):
        return [_resolved(part, (*path, index), secret) for index, part in enumerate(value)]
    return value


def _at(values: Any, path: KeyPath) -> Any:
    for part in path:
        values = values[part]
    return values


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        for part in value.values():
            yield from _leaves(part)
    elif isinstance(value, list):
        for part in value:
            yield from _leaves(part)
    else:
        yield value
