"""The child's side of the doctor: `python -m prime_core.hub.probe FD` loads one plugin and says so.

Reads a request from stdin, writes each phase it begins and then one answer to FD, and exits 0. The
plugin's code runs here, so anything may happen after a phase has begun.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from prime_core.hub.probing import Answer, Request

if TYPE_CHECKING:
    from prime_core.hub.hub import Hub
    from prime_core.hub.records import PluginRecord

# A tracker's factory may open a run on somebody's server; its parameters are still validated.
_NOT_MADE = frozenset({"tracker"})


class Reporter:
    """Writes one JSON object a line to a file descriptor, at once."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def say(self, message: dict[str, object]) -> None:
        """One line, in one write (it's shorter than a pipe's buffer)."""
        os.write(self._descriptor, json.dumps(message).encode() + b"\n")


def main(arguments: list[str]) -> None:
    """Answer one request."""
    from prime_core.api import PluginError
    from prime_core.hub.hub import Hub

    descriptor = int(arguments[0])
    os.set_inheritable(descriptor, False)
    reporter = Reporter(descriptor)
    request = Request(**json.load(sys.stdin))
    try:
        answer = _try(Hub.discover(request.block), request, reporter)
    except PluginError as error:
        answer = Answer(error.phase, cause=error.what, fix=error.fix or "")
    reporter.say({"answer": asdict(answer)})


def _try(hub: Hub, request: Request, reporter: Reporter) -> Answer:
    """Load, register and, where parameters are given, configure the plugin."""
    from prime_core.hub.kinds import OBSERVER

    record = _record(hub, request)
    identity = {
        "distribution": record.distribution,
        "installed_version": record.version,
        "module": record.module,
    }
    reporter.say({"identity": identity})
    reporter.say({"begin": "imported"})
    hub.import_module(record)
    reporter.say({"begin": "registered"})
    hub.load(record)
    if request.params is None or record.kind == OBSERVER:
        return Answer("registered", **identity)
    reporter.say({"begin": "configured"})
    _configure(hub, record, request)
    return Answer("configured", **identity)


def _record(hub: Hub, request: Request) -> PluginRecord:
    """The record that the parent means; another interpreter's hub has to find it itself."""
    for record in hub.records():
        named = (record.kind, record.name) == (request.kind, request.name)
        if named and record.distribution == request.distribution and not record.shadowed:
            return record
    return hub.find(request.kind, request.name, request.version)


def _configure(hub: Hub, record: PluginRecord, request: Request) -> None:
    from prime_core.hub.context import RunContext

    values = request.params or {}
    if record.kind in _NOT_MADE:
        hub.validate(record, values)
    else:
        hub.make_from(record, values, RunContext.from_environment())


if __name__ == "__main__":
    main(sys.argv[1:])
