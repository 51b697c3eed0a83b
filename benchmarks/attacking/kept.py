"""Results of a long benchmark, written after each, so that a run that was stopped goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


class Kept:
    """Results by part and name; those of a file with the same settings are taken up.

    Args:
        path: of the JSON file; None keeps nothing.
        settings: what results depend on.
    """

    def __init__(self, path: Path | None, settings: Mapping[str, Any]) -> None:
        self._path = path
        self._all: dict[str, Any] = {"settings": dict(settings), "parts": {}}
        if path is not None and path.exists():
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["settings"] != settings:
                sys.exit(f"{path} holds results of other settings: {found['settings']}")
            self._all = found

    def get(self, part: str, name: str, make: Callable[[], Mapping[str, Any]]) -> dict[str, Any]:
        """The result of that name, made where it isn't there yet."""
        results = self._all["parts"].setdefault(part, {})
        if name not in results:
            started = time.process_time()
            found = dict(make())
            spent = time.process_time() - started
            found["measured"] = {
                "cpu_s": round(spent, 1),
                "load": round(os.getloadavg()[0], 1),
                "version": _version(),
            }
            results[name] = json.loads(json.dumps(found))
            self._write()
            print(f"{part} {name}: {spent:.0f} s of CPU", file=sys.stderr, flush=True)
        return dict(results[name])

    def _write(self) -> None:
        if self._path is not None:
            partial = self._path.with_suffix(".partial")
            partial.write_text(json.dumps(self._all, indent=1) + "\n", encoding="utf-8")
            partial.replace(self._path)


def _version() -> str:
    """Of the checkout, "unknown" where it is none."""
    root = Path(__file__).parent
    command = ["git", "describe", "--always"]
    found = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"
