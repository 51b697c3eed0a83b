"""Checks parameters of hosted plugins in a process of its own; `python -m` runs the other half.

Called by `prime_core.run.configuration`. The child imports environments, verifiers and rewards, so
that the caller never does; whatever it does, the caller gets reports: a crash or a hang is a fault.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from pydantic import BaseModel

from prime_core.config.locate import KeyPath
from prime_core.config.params import PluginReport
from prime_core.config.problems import Fault
from prime_core.config.sections import PluginChoice
from prime_core.hub.selection import Selection

TIME_LIMIT_S = 60.0  # an environment may import much; one that hangs must not hang the caller


def check_hosted(
    chosen: Sequence[tuple[KeyPath, Selection]], block: Sequence[str], *, check_files: bool = True
) -> list[PluginReport]:
    """One report for each choice, made by one child process under this interpreter.

    Args:
        check_files: refuse data sets whose files aren't there.
    """
    if not chosen:
        return []
    asked = [
        {
            "path": path,
            "kind": each.kind,
            "choice": {
                "use": each.choice.use,
                "version": each.choice.version,
                "with": each.choice.params,
            },
        }
        for path, each in chosen
    ]
    question_of = {"block": list(block), "plugins": asked, "check_files": check_files}
    # a child that imports other people's code may print anything, or leave processes behind that
    # hold its pipes open: so there are no pipes, and the answer goes to a file
    with tempfile.TemporaryDirectory(prefix="prime-core-check-") as directory:
        question, answer = Path(directory, "question.json"), Path(directory, "answer.json")
        question.write_text(json.dumps(question_of, default=str))
        command = [sys.executable, "-m", __name__, str(question), str(answer)]
        with Path(directory, "stderr").open("w+b") as stderr:
            try:
                done = subprocess.run(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    timeout=TIME_LIMIT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return _failed(chosen, f"didn't finish within {TIME_LIMIT_S:.0f} s")
            if not answer.is_file():
                return _failed(chosen, f"ended with status {done.returncode}{_last_line(stderr)}")
        return [_report(item) for item in json.loads(answer.read_bytes())]


def _last_line(stream: BinaryIO) -> str:
    stream.seek(0)
    lines = stream.read().decode(errors="replace").strip().splitlines()
    return f": {lines[-1].strip()}" if lines else ""


def _failed(chosen: Sequence[tuple[KeyPath, Selection]], how: str) -> list[PluginReport]:
    names = ", ".join(f"{each.kind}.{each.choice.use}" for _, each in chosen)
    fault = Fault(
        ("use",),
        f"importing {names} {how}",
        "run `prime-core plugins doctor`, which imports each alone and says which one it is",
    )
    return [PluginReport(chosen[0][0], (fault,), False)]


def _report(item: Any) -> PluginReport:
    faults = tuple(Fault(tuple(loc), what, fix) for loc, what, fix in item["faults"])
    return PluginReport(tuple(item["path"]), faults, item["known"])


def _missing(params: BaseModel, place: KeyPath) -> Iterator[Fault]:
    """Files of data sets, wherever among the parameters, that aren't there."""
    from prime_core.api.datasets import DatasetSource
    from prime_core.api.datasets.fetch import check_path, local_path

    if isinstance(params, DatasetSource):
        for url in params.urls:
            path = local_path(url)
            if path is not None and not path.is_file():
                yield Fault((*place, "url"), f"there is no file {path}", check_path())
    for name in type(params).model_fields:
        value = getattr(params, name)
        if isinstance(value, BaseModel):
            yield from _missing(value, (*place, name))


def main(question: Path, answer: Path) -> None:
    """The child: import each plugin alone, check its parameters, write the reports."""
    from prime_core.hub import Hub
    from prime_core.run.configuration import report

    asked = json.loads(question.read_bytes())
    hub = Hub.discover(asked["block"])
    reports = []
    for each in asked["plugins"]:
        choice = PluginChoice.model_validate(each["choice"])
        found = report(hub, tuple(each["path"]), Selection(each["kind"], choice, ""))
        if asked["check_files"] and not found.faults:
            faults = tuple(_missing(hub.params(each["kind"], choice), ("with",)))
            found = replace(found, faults=faults)
        reports.append(found)
    told = [
        {
            "path": each.path,
            "known": each.known,
            "faults": [(fault.loc, fault.what, fault.fix) for fault in each.faults],
        }
        for each in reports
    ]
    whole = answer.with_suffix(".tmp")
    whole.write_text(json.dumps(told))
    whole.rename(answer)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
