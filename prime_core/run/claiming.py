"""Whether a directory may hold this run: fresh, or resumed with the same config.

The supervisor calls it before anything is written, so it imports nothing heavy.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.store.layout import LOCK, RUN

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig

RUN_ID_BYTES = 8
LOCKS = "locks"  # of `prime_core.run.lifeline`; taken before a directory is claimed

# Keys whose change doesn't make a resumed run another run: limits of this machine and its display.
RESUMABLE = (
    "run.dir",
    "trainer.steps",
    "trainer.checkpoint_every",
    "trainer.keep_checkpoints",
    "trainer.threads",
    "engine.workers",
    "eval",
    "hosting",
    "validation",
    "trackers",
    "plugins.observers",
    "store.keep_policies",
)


def is_prepared(run_dir: Path) -> bool:
    """Whether the directory holds a run that can start."""
    return (run_dir / LOCK).is_file()


def check_directory(run_dir: Path, *, resume: bool) -> None:
    """Refuse a used directory without --resume, and --resume without a run.

    Raises:
        RunError: as said.
    """
    used = run_dir.is_dir() and any(entry.name != LOCKS for entry in run_dir.iterdir())
    if used and not resume:
        raise RunError(
            "the run directory isn't empty",
            where=str(run_dir),
            fix="go on with --resume, or choose another with --set run.dir=...",
        )
    if resume and not (run_dir / RUN).is_file():
        raise RunError(
            "there is no run to resume",
            where=str(run_dir),
            fix="leave --resume out to start one, or check run.dir",
        )


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Dotted keys whose values differ, those of `RESUMABLE` left out."""
    for key in sorted(old.keys() | new.keys()):
        name = f"{prefix}{key}"
        if name in RESUMABLE or old.get(key) == new.get(key):
            continue
        if isinstance(old.get(key), dict) and isinstance(new.get(key), dict):
            yield from differences(old[key], new[key], f"{name}.")
        else:
            yield name


def check_same_run(old: RunConfig, new: RunConfig) -> None:
    """Refuse to resume with a config that would make it another run.

    Raises:
        RunError: names every key that differs.
    """
    mine, theirs = (config.model_dump(mode="json", by_alias=True) for config in (old, new))
    if theirs["run"]["id"] is None:
        theirs["run"]["id"] = mine["run"]["id"]
    changed = list(differences(mine, theirs))
    if changed:
        raise RunError(
            f"the config differs from the run's own in {', '.join(changed)}",
            where=str(old.run.dir / RUN),
            fix="give the values that the run started with, or start a new run",
        )


def config_digest(config: RunConfig) -> str:
    """SHA-256 (hex) of what the config decides: all of it but `RESUMABLE`, wherever it lies."""
    values = config.model_dump(mode="json", by_alias=True)
    for key in RESUMABLE:
        *sections, last = key.split(".")
        place = values
        for section in sections:
            place = place[section]
        del place[last]
    text = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def new_run_id() -> str:
    """A random run id."""
    return secrets.token_hex(RUN_ID_BYTES)
