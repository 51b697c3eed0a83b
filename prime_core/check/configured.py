"""A subject's plugin as the hub and the hosts are asked for it: its name, parameters, verifier.

The lab and its benches use it. Invariant: a child is asked for exactly what a run config with the
same words would make.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from prime_core.check.subject import Subject
from prime_core.config.sections import EnvironmentChoice, PluginChoice


def environment_choice(
    subject: Subject, params: Mapping[str, Any] | None = None
) -> EnvironmentChoice:
    """The subject's environment, with `params` on top of its case's own."""
    assert subject.entry is not None
    assert subject.case is not None
    values: dict[str, Any] = {
        "use": subject.entry.name,
        "with": {**subject.case.params, **(params or {})},
    }
    if subject.case.verifier is not None:
        values["verifier"] = subject.case.verifier.model_dump(mode="json", by_alias=True)
    return EnvironmentChoice.model_validate(values)


def plugin_choice(subject: Subject) -> PluginChoice:
    """The subject's plugin, whatever its kind."""
    assert subject.entry is not None
    assert subject.case is not None
    return PluginChoice.model_validate({"use": subject.entry.name, "with": subject.case.params})


def request(
    subject: Subject,
    block: Sequence[str],
    cache_dir: Path,
    params: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a child needs to make the subject's plugin."""
    made: dict[str, Any] = {
        "kind": subject.kind,
        "block": block,
        "cache_dir": str(cache_dir),
        "choice": plugin_choice(subject).model_dump(mode="json", by_alias=True),
    }
    if subject.kind == "environment":
        choice = environment_choice(subject, params)
        made["environment"] = choice.model_dump(mode="json", by_alias=True)
    return made
