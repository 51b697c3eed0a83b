"""What the doctor says of every installed plugin: loaded, not selected or failed, and why.

Each plugin is tried in a process of its own (`prime_core.hub.probe`), so that one that exits,
hangs or crashes at import is a finding and not the doctor's end.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

from packaging.utils import canonicalize_name

from prime_core.api import Json, PluginError
from prime_core.hub.finding import duplicate
from prime_core.hub.probing import Answer, Request, run_probe
from prime_core.hub.records import PluginRecord, found_problem
from prime_core.hub.refusal import refusal

if TYPE_CHECKING:
    from prime_core.hub.hub import Hub
    from prime_core.hub.selection import Selection

PROBE_TIMEOUT_S = 120.0  # importing torch from a cold disk is the slowest honest import

Status = Literal["loaded", "not selected", "failed"]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The state of one plugin.

    Attributes:
        kind, name, distribution, version, module: as its metadata says; "" where unknown.
        status: loaded, not selected or failed.
        phase: the phase it reached, or failed in: found, imported, registered, configured.
        cause: why it failed or isn't selected; "" where it is loaded.
        fix: what to do about it; "" where nothing.
        command: the command to run next; "" where none.
        where: place in the run config that selects it; "" without a config.
    """

    kind: str
    name: str
    distribution: str
    version: str
    module: str
    status: Status
    phase: str
    cause: str = ""
    fix: str = ""
    command: str = ""
    where: str = ""

    @property
    def label(self) -> str:
        """`<kind>.<name>`."""
        return f"{self.kind}.{self.name}" if self.kind else self.name

    def to_json(self) -> dict[str, Json]:
        """The fields as JSON."""
        return asdict(self)


def diagnose(
    hub: Hub,
    selected: Sequence[Selection] | None = None,
    *,
    timeout_s: float = PROBE_TIMEOUT_S,
) -> list[Diagnosis]:
    """The state of every plugin.

    Args:
        hub: what is installed, and what is blocked.
        selected: what a run config selects, each tried with its parameters; None tries every
            installed plugin without parameters.
        timeout_s: a plugin that needs longer to load has failed.

    Returns:
        First the selected plugins in the config's order, then the others by kind and name.
    """
    chosen = _all([partial(_selected, hub, each, timeout_s) for each in selected or []])
    # one that is chosen and blocked is told once; one that another replaces is told too
    told = {(each.label, each.distribution) for each in chosen}
    others: list[Callable[[], Diagnosis]] = []
    for record in hub.records():
        usable = hub.blocked_by(record) is None and not record.shadowed
        if selected is None and usable:
            others.append(partial(_installed, hub, record, timeout_s))
        elif (record.label, record.distribution) not in told or record.shadowed:
            others.append(partial(_not_selected, hub, record))
    return chosen + _all(others)


def _all(jobs: Sequence[Callable[[], Diagnosis]]) -> list[Diagnosis]:
    """The results in order; a few processes at a time."""
    with ThreadPoolExecutor(max_workers=max(1, min(4, os.cpu_count() or 1))) as pool:
        return list(pool.map(lambda job: job(), jobs))


def _of(record: PluginRecord, status: Status, phase: str) -> Diagnosis:
    return Diagnosis(
        kind=record.kind,
        name=record.name,
        distribution=record.distribution,
        version=record.version,
        module=record.module,
        status=status,
        phase=phase,
    )


def _not_selected(hub: Hub, record: PluginRecord) -> Diagnosis:
    blocked = hub.blocked_by(record)
    if blocked is not None:
        cause = f"blocked by {blocked!r}"
    elif record.shadowed:
        cause = f"another {record.distribution} earlier on sys.path hides {record.location}"
    else:
        problem = _found(hub, record)
        cause = f"the run config doesn't name it{'; also: ' + problem.what if problem else ''}"
    return replace(_of(record, "not selected", "found"), cause=cause)


def _found(hub: Hub, record: PluginRecord) -> PluginError | None:
    """What metadata says against an unblocked record, duplicates included."""
    problem = found_problem(record)
    if problem is not None:
        return refusal(record, "found", problem[0], fix=problem[1])
    alike = hub.candidates(record.kind, record.name)
    return duplicate(alike) if len(alike) > 1 else None


def _installed(hub: Hub, record: PluginRecord, timeout_s: float) -> Diagnosis:
    """Try one installed plugin without parameters."""
    problem = _found(hub, record)
    if problem is not None:
        command = f"pip install --upgrade {canonicalize_name(record.distribution)}"
        if found_problem(record) is None:  # then it's a name that is taken twice
            command = f"prime-core plugins list --kind {record.kind}"
        return replace(
            _of(record, "failed", "found"),
            cause=problem.what,
            fix=problem.fix or "",
            command=command,
        )
    request = Request(kind=record.kind, name=record.name, distribution=record.distribution)
    return _judge(run_probe(request, timeout_s=timeout_s), _of(record, "loaded", "found"))


def _selected(hub: Hub, selection: Selection, timeout_s: float) -> Diagnosis:
    """Try what a run config selects, with its parameters and under its interpreter."""
    choice = selection.choice
    blank = Diagnosis(
        kind=selection.kind,
        name=choice.use,
        distribution="",
        version="",
        module="",
        status="loaded",
        phase="found",
        where=selection.where,
    )
    if selection.python is None:
        try:
            record = hub.find(selection.kind, choice.use, choice.version)
        except PluginError as error:
            alike = [r for r in hub.records() if (r.kind, r.name) == (blank.kind, blank.name)]
            known = _of(alike[0], "failed", "found") if len(alike) == 1 else blank
            return replace(
                known,
                status="failed",
                where=blank.where,
                cause=error.what,
                fix=error.fix or "",
                command=f"prime-core plugins list --kind {blank.kind}",
            )
        blank = replace(
            blank,
            distribution=record.distribution,
            version=record.version,
            module=record.module,
        )
    request = Request(
        kind=selection.kind,
        name=choice.use,
        distribution=blank.distribution,
        version=choice.version,
        params=choice.params,
        block=hub.blocks,
    )
    answer = run_probe(request, timeout_s=timeout_s, python=selection.python)
    return _judge(answer, blank)


def _judge(answer: Answer, blank: Diagnosis) -> Diagnosis:
    """What a probe's answer makes of the plugin."""
    known = replace(
        blank,
        distribution=answer.distribution or blank.distribution,
        version=answer.installed_version or blank.version,
        module=answer.module or blank.module,
        phase=answer.phase,
    )
    if not answer.cause:
        return known
    command = _command(known.kind, known.name, known.phase, known.distribution, known.module)
    return replace(
        known,
        status="failed",
        cause=answer.cause,
        fix=answer.fix,
        command=answer.command or command,
    )


def _command(kind: str, name: str, phase: str, distribution: str, module: str) -> str:
    """The command that shows more, or mends it."""
    if phase == "imported" and module:
        return f"python -c 'import {module}'"
    if phase == "configured":
        return f"prime-core plugins show {kind}.{name}"
    if phase == "registered":
        return f"prime-core plugins show {kind}.{name}@{distribution}"
    return f"pip install --upgrade {canonicalize_name(distribution)}"
