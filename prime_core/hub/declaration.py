"""Holds a module's specs against its distribution's entry points, and against the API.

Called by the loader once per module; metadata that lies about a plugin is an error, so that lists
made without importing can be trusted.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from pydantic import BaseModel

from prime_core.api import API_VERSION, Spec
from prime_core.hub.kinds import OBSERVER
from prime_core.hub.records import PluginRecord
from prime_core.hub.refusal import refusal


def hold_to_declaration(
    record: PluginRecord,
    registered: set[tuple[str, str]],
    observes: bool,
    declared: Sequence[PluginRecord],
) -> None:
    """What a module registers equals the names its distribution declared for it."""
    wanted = {(each.kind, each.name) for each in declared if each.kind != OBSERVER}
    observers = [each.label for each in declared if each.kind == OBSERVER]
    problems = []
    extra, absent = sorted(registered - wanted), sorted(wanted - registered)
    if extra:
        names = ", ".join(f"{kind}.{name}" for kind, name in extra)
        problems.append(f"registers {names}, which its entry points don't declare")
    if absent:
        names = ", ".join(f"{kind}.{name}" for kind, name in absent)
        problems.append(f"declares {names}, which it doesn't register")
    if observes and not observers:
        problems.append("implements notification hooks, but no entry point declares observer.NAME")
    if observers and not observes:
        problems.append(f"declares {observers[0]}, but implements no notification hook")
    if len(observers) > 1:
        problems.append(f"declares {' and '.join(observers)}; a module is one observer")
    if problems:
        raise refusal(
            record,
            "registered",
            f"{record.module} {'; it '.join(problems)}",
            fix=(
                f"make the entry points of {record.distribution} and what the hooks return agree, "
                f"then reinstall it (entry points are read at installation)"
            ),
        )


def check_spec(record: PluginRecord, label: str, spec: Spec) -> None:
    """The spec is of this API, and its parameters refuse unknown keys."""
    if spec.api != API_VERSION:
        raise refusal(
            record,
            "registered",
            f"{label} is written for plugin API {spec.api!r}, this prime-core has {API_VERSION!r}",
            fix=f"install a version of {record.distribution} for API {API_VERSION}",
        )
    if not (inspect.isclass(spec.params) and issubclass(spec.params, BaseModel)):
        raise refusal(
            record,
            "registered",
            f"params of {label} is {spec.params!r}, not a pydantic model",
            fix="derive it from prime_core.api.Params",
        )
    if spec.params.model_config.get("extra") != "forbid":
        raise refusal(
            record,
            "registered",
            f"{spec.params.__name__} of {label} lets unknown parameters pass",
            fix="derive it from prime_core.api.Params, which refuses them",
        )
    if not callable(spec.factory):
        raise refusal(record, "registered", f"factory of {label} can't be called")
