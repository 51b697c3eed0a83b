"""One key explained, and two configs compared.

Called by `prime-core config explain` and `config diff`.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from pydantic import BaseModel

from prime_core.api.errors import ConfigError, PrimeError
from prime_core.config import fields, toml_text
from prime_core.config.load import LoadedConfig
from prime_core.config.locate import KeyPath, dotted, split_key
from prime_core.config.sections import PluginChoice, RunConfig
from prime_core.config.walk import choices, flatten

ParamsOf: TypeAlias = Callable[[KeyPath, PluginChoice], type[BaseModel] | None]

UNSET = "unset"


@dataclass(frozen=True, slots=True)
class Explanation:
    """All there is to say of one key; `value` and `default` as TOML, or `unset`."""

    key: str
    value: str
    origin: str
    type: str
    default: str
    help: str


@dataclass(frozen=True, slots=True)
class Difference:
    """A key whose value differs between two configs; a value is `unset` where it has none."""

    key: str
    left: str
    left_origin: str
    right: str
    right_origin: str


def explain(loaded: LoadedConfig, key: str, params_of: ParamsOf) -> list[Explanation]:
    """Explain a key, or every key of a table.

    Args:
        params_of: the parameters' model of a plugin choice; None where it can't be known.

    Raises:
        ConfigError: there is no such key; names the nearest.
    """
    try:
        path = split_key(key)
    except ValueError:
        path = (key,)
    name = dotted(tuple(int(part) if part.isdigit() else part for part in path))
    everything = _everything(loaded, name, params_of)
    found = [each for each in everything if each.key == name or each.key.startswith(f"{name}.")]
    if found:
        return found
    near = difflib.get_close_matches(name, [each.key for each in everything], n=1, cutoff=0.5)
    raise ConfigError(
        [
            PrimeError(
                f"there is no key {name}",
                where=str(loaded.source),
                fix=f"did you mean {near[0]}?" if near else "see `prime-core config schema`",
            )
        ],
        source=str(loaded.source),
    )


def _everything(loaded: LoadedConfig, wanted: str, params_of: ParamsOf) -> list[Explanation]:
    """Every key; of plugins that `wanted` concerns, also the parameters left at their defaults."""
    models: dict[KeyPath, type[BaseModel]] = {}
    chosen = dict(choices(loaded.config))
    for path, choice in chosen.items():
        table = dotted((*path, "with"))
        if f"{wanted}.".startswith(f"{table}.") or table.startswith(f"{wanted}."):
            model = params_of(path, choice)
            if model is not None:
                models[*path, "with"] = model
    found = []
    for leaf, value in flatten(loaded.config).items():
        inside = next((prefix for prefix in models if leaf[: len(prefix)] == prefix), None)
        if inside is None:
            found.append(_one(loaded, leaf, value, RunConfig, leaf))
        elif leaf != inside:  # an empty `with`
            found.append(_one(loaded, leaf, value, models[inside], leaf[len(inside) :]))
    for prefix, model in models.items():
        found += [
            _one(loaded, (*prefix, name), None, model, (name,))
            for name in fields.fields(model)
            if name not in chosen[prefix[:-1]].params
        ]
    return found


def _one(
    loaded: LoadedConfig, path: KeyPath, value: object, model: type[BaseModel], inner: KeyPath
) -> Explanation:
    key = dotted(path)
    info = fields.info_at(model, inner)
    doc = fields.describe(str(path[-1]), info) if info is not None else None
    origin = str(loaded.origins.get(key, "default"))
    shown = UNSET if value is None else toml_text.value(value)
    if value is None and doc is not None:
        shown = doc.default
    return Explanation(
        key,
        shown,
        origin,
        doc.type if doc else "as the plugin says",
        doc.default if doc else "as the plugin says",
        doc.help if doc else "see `prime-core plugins show` for the plugin's parameters",
    )


def compare(left: LoadedConfig, right: LoadedConfig) -> list[Difference]:
    """Every key whose value differs, in the order of the sections."""
    ours, theirs = flatten(left.config), flatten(right.config)
    keys = list(ours) + [key for key in theirs if key not in ours]
    return [
        Difference(
            dotted(key),
            _text(ours.get(key)),
            str(left.origins.get(dotted(key), "default")),
            _text(theirs.get(key)),
            str(right.origins.get(dotted(key), "default")),
        )
        for key in keys
        if ours.get(key) != theirs.get(key)
    ]


def _text(value: object) -> str:
    return UNSET if value is None else toml_text.value(value)
