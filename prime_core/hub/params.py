"""Validates the `with = {...}` of a plugin choice and describes a plugin's parameters.

Called by `Hub.params` and `prime-core plugins show`. Every problem of one choice is in one error,
an unknown key names the nearest valid one, and no message holds a secret (invariant 10).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from prime_core.config import fields, secrets
from prime_core.config.fields import FieldDoc
from prime_core.config.params import check_params
from prime_core.hub.records import PluginRecord
from prime_core.hub.refusal import describe, refusal


def parameters(model: type[BaseModel]) -> list[FieldDoc]:
    """The parameters of a plugin in the order of their definition; nested ones are dotted."""
    found: list[FieldDoc] = []
    _collect(model, "", found, ())
    return found


def _collect(
    model: type[BaseModel], prefix: str, found: list[FieldDoc], above: tuple[type[BaseModel], ...]
) -> None:
    for key, info in fields.fields(model).items():
        found.append(fields.describe(f"{prefix}{key}", info))
        inner = fields.section_of(info.annotation)
        if inner is not None and inner not in (*above, model):  # a model may hold itself
            _collect(inner, f"{prefix}{key}.", found, (*above, model))


def validate(record: PluginRecord, model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """The validated parameters, every `env:NAME` of a secret read from the environment.

    Raises:
        PluginError: of phase configured; lists every unknown key and bad value.
    """
    try:
        faults = check_params(model, values, ("with",))
        if not faults:
            return model.model_validate(secrets.resolve(model, values))
    except Exception as error:  # a validator of the plugin's own that isn't pydantic's ValueError
        raise refusal(
            record,
            "configured",
            f"validating its parameters raised {describe(error)}",
            fix=valid_names(record, model),
        ) from error
    valid = valid_names(record, model)
    if len(faults) == 1:
        raise refusal(record, "configured", faults[0].what, fix=f"{faults[0].fix}; {valid}")
    listed = "; ".join(f"{fault.what} ({fault.fix})" for fault in faults)
    raise refusal(record, "configured", f"{len(faults)} problems: {listed}", fix=valid)


def valid_names(record: PluginRecord, model: type[BaseModel]) -> str:
    """The parameters there are, the file that defines them, the command that shows them."""
    names = list(fields.fields(model))
    if not names:
        return f"{record.label} has no parameters"
    try:
        place = f" ({inspect.getsourcefile(model)})"
    except TypeError:  # a model made in memory has no file
        place = ""
    listed = ", ".join(names)
    return f"its parameters are {listed}{place}; see `prime-core plugins show {record.label}`"
