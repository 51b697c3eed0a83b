"""A jailed child: imports the modules of a distribution, registers its plugins, and notes it all.

Started as `python -m prime_core.check.observe REQUEST RESULT` by `prime_core.check.lab`; both are
JSON files. Invariant: whatever the package does, what was seen up to there is in the result.
"""

from __future__ import annotations

import atexit
import builtins
import decimal
import importlib
import json
import locale
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prime_core.api import PluginError

NETWORK = ("socket.connect", "socket.getaddrinfo", "socket.gethostby", "socket.sendto", "urllib.")
WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate",
          "shutil.")  # fmt: skip
PROCESSES = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "os.exec",
             "pty.spawn")  # fmt: skip
THREADS = ("_thread.start_new_thread",)
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
KEPT = 20  # events of one sort


class Watch:
    """An audit hook that notes network, writes, processes and threads while it is on."""

    def __init__(self) -> None:
        self.on = False
        self.seen: dict[str, list[str]] = {}
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        sort = self._sort(event, arguments)
        if sort:
            where = self.seen.setdefault(sort, [])
            if len(where) < KEPT:
                where.append(f"{event}({', '.join(repr(each)[:80] for each in arguments[:2])})")

    def _sort(self, event: str, arguments: tuple[Any, ...]) -> str:
        if event == "open":
            path, flags = str(arguments[0]), arguments[2]
            writes = isinstance(flags, int) and flags & WRITING
            harmless = "__pycache__" in path or path == os.devnull
            return "writes" if writes and not harmless else ""
        for sort, events in (("network", NETWORK), ("writes", WRITES), ("processes", PROCESSES),
                             ("threads", THREADS)):  # fmt: skip
            if event.startswith(events):
                return sort
        return ""


def state() -> dict[str, Callable[[], object]]:
    """What an import must leave alone, by name."""
    import numpy.random

    return {
        "the state of random": random.getstate,
        "the state of numpy.random": lambda: repr(numpy.random.get_state(legacy=False)),
        "environment variables": lambda: dict(os.environ),
        "the working directory": os.getcwd,
        "the umask": _umask,
        "the locale": lambda: locale.setlocale(locale.LC_ALL),
        "sys.path": lambda: list(sys.path),
        "the recursion limit": sys.getrecursionlimit,
        "the limit of integer digits": sys.get_int_max_str_digits,
        "sys.excepthook": lambda: id(sys.excepthook),
        "standard streams": lambda: [id(sys.stdin), id(sys.stdout), id(sys.stderr)],
        "builtins": lambda: {name: id(each) for name, each in vars(builtins).items()},
        "the default socket timeout": socket.getdefaulttimeout,
        "the decimal context": lambda: repr(decimal.getcontext()),
        "handlers of the root logger": lambda: [id(each) for each in logging.getLogger().handlers],
        "the level of the root logger": lambda: logging.getLogger().level,
        "exit handlers": atexit._ncallbacks,
        "signal handlers": lambda: [
            repr(signal.getsignal(number)) for number in sorted(signal.valid_signals())
        ],
        "running threads": lambda: sorted(each.name for each in threading.enumerate()),
    }


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def observe_module(module: str, watch: Watch, report: Callable[[str, Any], None]) -> None:
    """Import one module and report CPU seconds, new modules, events and changed state."""
    getters = state()
    before = {name: get() for name, get in getters.items()}
    loaded = set(sys.modules)
    watch.seen = {}
    watch.on = True
    started = time.process_time()
    try:
        importlib.import_module(module)
        error = ""
    except BaseException as failure:  # noqa: BLE001 - SystemExit at import is an error here
        error = f"{type(failure).__name__}: {failure}"
    seconds = time.process_time() - started
    watch.on = False
    after = {name: get() for name, get in getters.items()}
    report(
        module,
        {
            "error": error,
            "cpu_s": seconds,
            "modules": sorted({name.partition(".")[0] for name in set(sys.modules) - loaded}),
            "events": watch.seen,
            "changed": [name for name in getters if before[name] != after[name]],
        },
    )


def observe_plugin(entry: Mapping[str, Any], block: list[str]) -> dict[str, Any]:
    """Register one plugin and look at its parameters; the first problem ends it."""
    from prime_core.hub import Hub
    from prime_core.hub.kinds import OBSERVER

    hub = Hub.discover(block)
    try:
        record = hub.find(entry["kind"], entry["name"])
        hub.load(record)
        if record.kind == OBSERVER:
            return {"phase": "registered", "parameters": None}
        spec = hub.spec_of(record)
    except PluginError as error:
        return {"phase": error.phase, "error": error.what, "fix": error.fix or ""}
    return {
        "phase": "registered",
        "summary": spec.summary,
        "api": spec.api,
        "parameters": _parameters(spec.params, entry["with"]),
    }


def _parameters(model: Any, cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What the parameter model accepts."""
    from prime_core.hub.params import parameters

    found: dict[str, Any] = {"fields": [], "splits": []}
    try:
        schema = model.model_json_schema()
        found["undescribed"] = [each.name for each in parameters(model) if not each.help]
        found["required"] = sorted(schema.get("required", []))
        split = schema.get("properties", {}).get("split", {})
        found["splits"] = [each for each in split.get("enum", []) if isinstance(each, str)]
    except Exception as error:  # noqa: BLE001 - the model is the package's code
        return found | {"schema_error": f"{type(error).__name__}: {error}"}
    found["default_error"] = _refusal(model, {}) if not found["required"] else ""
    found["case_errors"] = [_refusal(model, case) for case in cases]
    found["takes_unknown"] = not _refusal(model, {**cases[0], "no_such_parameter": 1})
    return found


def _refusal(model: Any, values: dict[str, Any]) -> str:
    try:
        model.model_validate(values)
    except Exception as error:  # noqa: BLE001 - validators are the package's code
        return f"{type(error).__name__}: {error}"
    return ""


def main(arguments: list[str]) -> None:
    """Answer one request; the result is written anew after each part."""
    request = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    target = Path(arguments[1])
    found: dict[str, Any] = {"modules": {}, "plugins": {}}

    def write() -> None:
        temporary = target.with_suffix(".part")
        temporary.write_text(json.dumps(found), encoding="utf-8")
        temporary.replace(target)

    def report(module: str, seen: Any) -> None:
        found["modules"][module] = seen
        write()

    watch = Watch()
    for module in request["modules"]:
        found["at"] = f"importing {module}"
        write()
        observe_module(module, watch, report)
    for entry in request["plugins"]:
        found["at"] = f"registering {entry['label']}"
        write()
        found["plugins"][entry["label"]] = observe_plugin(entry, request["block"])
    found["at"] = ""
    write()
    os._exit(0)  # threads that the package left must not keep us


if __name__ == "__main__":
    main(sys.argv[1:])
