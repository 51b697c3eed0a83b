"""Validates the `with = {...}` of a plugin choice and describes a plugin's parameters.

Called by `Hub.params` and `prime-core plugins show`. Every problem of one choice is in one error,
and an unknown key names the nearest valid one.
"""

from __future__ import annotations

import difflib
import inspect
import types
import typing
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from prime_core.api import Json
from prime_core.hub.loader import refusal
from prime_core.hub.records import PluginRecord


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a plugin.

    Attributes:
        name: the key in `with = {...}`.
        type: its type, as Python writes it.
        required: True where the plugin has no default.
        default: JSON of the default; None where required.
        constraints: bounds and patterns, e.g. `ge=0`.
        help: its one-line description; "" where the author gave none.
    """

    name: str
    type: str
    required: bool
    default: Json
    constraints: tuple[str, ...]
    help: str

    def to_json(self) -> dict[str, Json]:
        """The fields as JSON."""
        return {**asdict(self), "constraints": list(self.constraints)}


def parameters(model: type[BaseModel]) -> list[Parameter]:
    """The parameters of a plugin in the order of their definition."""
    return [
        Parameter(
            name=_key(name, field),
            type=type_text(field.annotation),
            required=field.is_required(),
            default=_default(field),
            constraints=tuple(_constraint(each) for each in field.metadata),
            help=" ".join((field.description or "").split()),
        )
        for name, field in model.model_fields.items()
    ]


def validate(record: PluginRecord, model: type[BaseModel], values: Mapping[str, Any]) -> BaseModel:
    """The validated parameters.

    Raises:
        PluginError: of phase configured; lists every unknown key and bad value.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        problems = [_problem(detail, model) for detail in error.errors(include_url=False)]
        raise refusal(
            record, "configured", "; ".join(problems), fix=_valid_names(record, model)
        ) from error
    except Exception as error:  # a validator of the plugin's own model
        raise refusal(
            record,
            "configured",
            f"validating its parameters raised {type(error).__name__}: {error}",
            fix=_valid_names(record, model),
        ) from error


def type_text(annotation: object) -> str:
    """An annotation as its author would write it: `int | None`, `list[str]`, `'a' | 'b'`."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is type(None):
        return "None"
    if origin is typing.Annotated:
        return type_text(arguments[0])
    if origin is typing.Literal:
        return " | ".join(repr(each) for each in arguments)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_text(each) for each in arguments)
    if origin is not None:
        inner = ", ".join("..." if each is ... else type_text(each) for each in arguments)
        return f"{getattr(origin, '__name__', str(origin))}[{inner}]"
    return str(getattr(annotation, "__name__", annotation)).removeprefix("typing.")


def _key(name: str, field: FieldInfo) -> str:
    return field.alias or name


def _default(field: FieldInfo) -> Json:
    if field.is_required():
        return None
    value = field.default
    if field.default_factory is not None:
        if field.default_factory_takes_validated_data:
            return "(computed from the other parameters)"
        value = field.get_default(call_default_factory=True)
    try:
        # Secrets come out as asterisks: pydantic's own masking (invariant 10).
        jsonable: Json = to_jsonable_python(value, fallback=repr)
    except PydanticSerializationError:
        return repr(value)
    return jsonable


def _constraint(metadata: object) -> str:
    names = [
        each
        for each in ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length")
        if getattr(metadata, each, None) is not None
    ]
    if names:
        return ", ".join(f"{each}={getattr(metadata, each)}" for each in names)
    pattern = getattr(metadata, "pattern", None)
    return f"pattern={pattern}" if pattern is not None else repr(metadata)


def _problem(detail: Mapping[str, Any], model: type[BaseModel]) -> str:
    place = [str(part) for part in detail["loc"]]
    name = ".".join(place)
    if detail["type"] == "extra_forbidden":
        holder = _model_at(model, place[:-1])
        names = [_key(each, field) for each, field in holder.model_fields.items()]
        near = difflib.get_close_matches(place[-1], names, n=1, cutoff=0.4)
        hint = f"; did you mean {'.'.join([*place[:-1], near[0]])!r}?" if near else ""
        return f"unknown parameter {name!r}{hint}"
    if detail["type"] == "missing":
        return f"parameter {name!r} is required"
    subject = f"parameter {name!r}: " if name else ""
    return f"{subject}{detail['msg']}"


def _model_at(model: type[BaseModel], place: list[str]) -> type[BaseModel]:
    """The nested model that a location runs through; the outermost where it runs through none."""
    for part in place:
        field = model.model_fields.get(part)
        if field is None:
            continue
        candidates = [field.annotation, *typing.get_args(field.annotation)]
        for candidate in candidates:
            if inspect.isclass(candidate) and issubclass(candidate, BaseModel):
                model = candidate
                break
    return model


def _valid_names(record: PluginRecord, model: type[BaseModel]) -> str:
    names = [_key(name, field) for name, field in model.model_fields.items()]
    listed = f"its parameters are {', '.join(names)}" if names else "it has no parameters"
    try:
        place = f" ({inspect.getsourcefile(model)})" if names else ""
    except TypeError:  # a model made in memory has no file
        place = ""
    return f"{listed}{place}; see `prime-core plugins show {record.label}`"
