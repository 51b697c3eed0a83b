"""A distribution installed alone by pip, and its plugins used there: what rule P13 looks at.

Invariant: what fails beside everything that is installed too isn't blamed on the installation.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from packaging.utils import canonicalize_name

from prime_core.api import FormatError
from prime_core.check import synthetic
from prime_core.check.distribution import Distribution
from prime_core.check.lab import Lab
from prime_core.check.measures import read_result
from prime_core.check.needs import providers
from prime_core.check.subject import Blocked, Subject
from prime_core.hosting import values
from prime_core.hub.kinds import KINDS


@dataclass(frozen=True, slots=True)
class Installed:
    """How it went.

    Attributes:
        pip: pip's complaint; "" where it installed the wheel.
        at, error: the step that failed there, and what it raised.
        lacks: the module, or the plugin KIND.NAME, that wasn't found.
        required: distributions that its requirements lead to.
    """

    pip: str = ""
    at: str = ""
    error: str = ""
    lacks: str = ""
    required: int = 0


async def install_alone(subject: Subject) -> Installed:
    """Install the wheel where nothing else is but what it requires, and use its plugins there.

    Raises:
        Blocked: it can't be tried, which another rule reports or the reason says.
    """
    lab, found = subject.lab, subject.distribution
    lab.runnable()
    assert found.wheel is not None
    if found.wheel_refusals:
        raise Blocked(f"its wheel holds what isn't installed here: {found.wheel_refusals[0]} (P07)")
    # No earlier child can have put anything there.
    folder = lab.launcher.inside / f"clean-{token_hex(8)}"
    texts = [str(each) for each in found.requirements]
    asked = {
        "wheel": str(found.wheel),
        "folder": str(folder),
        "name": canonicalize_name(found.name),
        "requirements": texts,
        "selected": ["sandbox.", *_verifiers(found)],
    }
    result, _, ended = await lab.child("clean_install", asked, lab.limits.start_s)
    said = _read(result, ended, "making a clean environment")
    unmet = values.sequence(said.get("unmet"), "unmet", values.text)
    if unmet:
        raise Blocked(f"it can't be installed alone here: {unmet[0]}")
    required = values.whole(said.get("required"), "required")
    pip = values.text(said.get("pip"), "pip")
    if pip:
        return Installed(pip=pip, required=required)
    plugins = list(_plugins(found, lab))
    seen = await _try(lab, plugins, folder)
    if seen["error"]:
        beside = await _try(lab, plugins, None)
        if beside["at"] == seen["at"] and (beside["lacks"] or not seen["lacks"]):
            raise Blocked(f"{seen['at']} fails wherever it is installed: {beside['error']}")
    return Installed(required=required, **seen)


def _verifiers(found: Distribution) -> list[str]:
    """Verifiers of others that the cases of checks.toml choose, as a run config does."""
    return [f"verifier.{case.verifier.use}" for case in found.checks.cases if case.verifier]


def _plugins(found: Distribution, lab: Lab) -> Iterator[dict[str, Any]]:
    """Every case of every plugin, as the trial is asked for it."""
    for entry in found.entries:
        if entry.kind not in KINDS:
            continue
        for case in found.checks.for_plugin(entry.label):
            subject = Subject(found, lab, entry, case)
            asked = {**lab.request(subject), "label": entry.label, "name": entry.name}
            if entry.kind == "verifier":
                task, (view, *_) = synthetic.tasks(case)[0], synthetic.listing(case).sample
                asked |= {"gold": task.gold, "verification": dict(task.verification)}
                asked["completion"] = view.gold
            yield asked


async def _try(lab: Lab, plugins: list[dict[str, Any]], folder: Path | None) -> dict[str, str]:
    """One trial; `at` and `error` are "" where all steps were taken."""
    asked = {
        "modules": lab.distribution.modules,
        "plugins": plugins,
        "home": str(folder / "lib") if folder else "",
    }
    python = folder / "bin" / "python" if folder else None
    limit_s = lab.limits.start_s * (1 + len(plugins))
    result, _, ended = await lab.child("trial", asked, limit_s, python)
    said = _read(result, ended, "starting Python there")
    seen = {name: values.text(said.get(name), name) for name in ("at", "error", "lacks")}
    if ended and seen["at"]:
        seen["error"] = ended
    return seen


def _read(result: Path, ended: str, doing: str) -> dict[str, Any]:
    try:
        return read_result(result)
    except FormatError as error:
        raise Blocked(f"{doing} failed: {ended or error.what}") from error


def requirement_of(lacking: str) -> str:
    """The installed distribution that has a module, or a plugin KIND.NAME; "" where none has."""
    top = lacking.partition(".")[0]
    if not top or top in sys.stdlib_module_names:
        return ""
    found = list(providers([lacking])) if top in KINDS else []
    found += importlib.metadata.packages_distributions().get(top, [])
    return found[0] if found else ""
