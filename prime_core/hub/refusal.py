"""The words of a plugin's error: whose it is, in which phase, what happened, what to do next.

Used by everything in the hub that turns a plugin away.
"""

from __future__ import annotations

import importlib
import traceback
from pathlib import Path

from prime_core.api import PluginError
from prime_core.hub.records import PluginRecord

DOCTOR = "run `prime-core plugins doctor` for the state of every plugin"
_LOADER = str(Path(__file__).with_name("loader.py"))  # our own frame says nothing about a plugin


def refusal(record: PluginRecord, phase: str, what: str, fix: str | None = None) -> PluginError:
    """The error of one plugin; without a fix of its own it points at the doctor."""
    return PluginError(
        what,
        plugin=record.label,
        distribution=f"{record.distribution} {record.version}".strip(),
        phase=phase,
        fix=fix or DOCTOR,
    )


def describe(error: BaseException) -> str:
    """Type, message (cut at 1,000 characters) and place of the innermost frame, on one line."""
    text = one_line(str(error))[:1000]
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen")
        and frame.filename not in (_LOADER, importlib.__file__)
    ]
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{': ' + text if text else ''}{place}"


def one_line(text: str) -> str:
    """The text with every run of white space as one blank."""
    return " ".join(text.split())
