"""A jailed child: uses a distribution's plugins as a run would, each step of every plugin noted.

Started as `python -m prime_core.check.trial REQUEST RESULT` by `prime_core.check.lab`, in the clean
environment that `clean_install` made and, for comparison, beside everything that is installed.
Invariant: a step that fails is named with what it raised; what follows it isn't tried.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from prime_core.api import Message, PluginError, Task
from prime_core.check.bench import completion_of
from prime_core.check.broken import verifier_of
from prime_core.check.listing import make, workbench
from prime_core.hosting.judging import Judge
from prime_core.hub.kinds import OBSERVER

# Kinds whose factory costs nothing; an engine or a ledger would open what it's for.
MADE = ("reward", "length_budget", "data_filter", "advantage")


class Misplaced(ImportError):
    """A module isn't the one that was installed."""


def steps(request: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(what is done, a call that does it) for every module and plugin."""
    for module in request["modules"]:
        yield f"importing {module}", lambda module=module: imported(module, request["home"])
    for entry in request["plugins"]:
        label = entry["label"]
        yield f"registering {label}", lambda entry=entry: registered(entry)
        if entry["kind"] == "environment":
            yield f"making and asking {label}", lambda entry=entry: environment(entry)
        elif entry["kind"] == "verifier":
            yield f"making and asking {label}", lambda entry=entry: verifier(entry)
        elif entry["kind"] in MADE:
            yield f"making {label}", lambda entry=entry: made(entry)


def imported(name: str, home: str) -> None:
    """Import a module; of a clean environment, it must come from there."""
    module = importlib.import_module(name)
    place = str(
        getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", [])), "")
    )
    if home and not place.startswith(home):  # lib, or lib64 of some systems
        raise Misplaced(f"{name} comes from {place}, not from the wheel")


def registered(entry: dict[str, Any]) -> None:
    """Let the hub load the plugin by its name."""
    hub, _ = workbench(entry)
    record = hub.find(entry["kind"], entry["name"])
    hub.load(record)
    if record.kind != OBSERVER:
        hub.spec_of(record)


def made(entry: dict[str, Any]) -> Any:
    """The plugin, with the parameters of its case."""
    from prime_core.config.sections import PluginChoice

    hub, context = workbench(entry)
    return hub.make(entry["kind"], PluginChoice.model_validate(entry["choice"]), context)


def environment(entry: dict[str, Any]) -> None:
    """Make it, list its tasks, render the first and judge its gold completion."""
    environment = make(entry)
    task = environment.tasks()[0]
    environment.render(task, None)
    if callable(getattr(environment, "gold", None)):
        score(verifier_of(environment, entry), task, environment.gold(task))


def verifier(entry: dict[str, Any]) -> None:
    """Make it, and judge a completion of a task that the check made."""
    task = Task(
        id="trial",
        prompt=(Message("user", "A trial."),),
        gold=entry["gold"],
        verification=entry["verification"],
    )
    score(made(entry), task, entry["completion"])


def score(verifier: Any, task: Task, text: str) -> None:
    """Judge; the status error is an error here."""
    verdict = Judge(verifier).score(task, completion_of(text))
    if verdict["status"] == "error":
        raise RuntimeError(str(verdict.get("detail") or verdict.get("evidence") or "status error"))


def main(arguments: list[str]) -> None:
    """Answer one request; the result is written anew before each step."""
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    target = Path(arguments[1])

    def write(at: str, error: str, lacks: str = "") -> None:
        said = {"at": at, "error": error, "lacks": lacks}
        target.write_text(json.dumps(said), encoding="utf-8")

    for name, call in steps(request):
        write(name, "it ended the process")
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - SystemExit is an error here too
            from prime_core.hosting.serve import describe_error

            write(name, str(describe_error(error)["detail"]), lacking(error))
            os._exit(0)
    write("", "")
    os._exit(0)


def lacking(error: BaseException) -> str:
    """The module, or the plugin KIND.NAME, that can't be found; "" for any other error."""
    behind: BaseException | None = error
    while behind is not None:
        if isinstance(behind, ModuleNotFoundError):
            return str(behind.name or "")
        if isinstance(behind, PluginError) and behind.phase == "found":
            return behind.plugin
        behind = behind.__cause__ or behind.__context__
    return ""


if __name__ == "__main__":
    main(sys.argv[1:])
