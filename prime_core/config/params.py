"""A plugin's `with = {...}` against the model of its parameters, fault by fault.

Called by `prime_core.run.configuration` for every chosen plugin. Loads nothing: the caller brings
the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError

from prime_core.config import secrets
from prime_core.config.locate import KeyPath
from prime_core.config.problems import Fault, faults


@dataclass(frozen=True, slots=True)
class PluginReport:
    """What was found about one plugin choice.

    Attributes:
        path: key path of the choice, e.g. ("environments", 0).
        faults: with `loc` below the choice, e.g. ("use",) or ("with", "alpha").
        known: whether the plugin's model was seen, so that its secrets are known.
    """

    path: KeyPath
    faults: tuple[Fault, ...]
    known: bool


def check_params(
    model: type[BaseModel], values: Mapping[str, Any], prefix: KeyPath
) -> tuple[Fault, ...]:
    """The faults of a plugin's parameters; `prefix` is the key path of its `with` table."""
    literal = secrets.literal_secrets(model, values)
    if literal:
        # not validated any further: a validator of the plugin might show what it was given
        return tuple(_below_with(fault, prefix) for fault in literal)
    hidden = secrets.secret_paths(model, values)
    found = [_below_with(fault, prefix) for fault in secrets.unset_references(model, values)]
    try:
        model.model_validate(secrets.resolve(model, values))
    except ValidationError as error:
        found += [
            Fault(("with", *fault.loc), fault.what, fault.fix)
            for fault in faults(error, model, prefix, hidden)
        ]
    return tuple(found)


def _below_with(fault: Fault, prefix: KeyPath) -> Fault:
    return Fault(("with", *fault.loc), fault.what, fault.fix)
