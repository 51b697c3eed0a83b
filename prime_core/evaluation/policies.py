"""Which policy a command means: a version of a run, or a model directory."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from prime_core.api import RunError

if TYPE_CHECKING:
    from prime_core.api import PolicyFiles
    from prime_core.config.sections import ModelSection, RunConfig

CACHE = "cache/eval"


def policy_of_run(config: RunConfig, version: int | None) -> PolicyFiles:
    """A sealed version of a run on local disk, every byte checked; None for the newest.

    Raises:
        RunError: it isn't sealed.
        IntegrityError: what is published isn't what the trainer signed.
    """
    from prime_core.signing import Signer
    from prime_core.store import layout
    from prime_core.store.objects import open_store
    from prime_core.store.policy import drop_cached, fetch_policy, is_sealed
    from prime_core.store.view import newest_sealed

    store, run_dir = open_store(config), config.run.dir
    found = newest_sealed(store) if version is None else version
    if found < 0 or not is_sealed(store, found):
        raise RunError(
            "the run has no policy version yet"
            if version is None
            else f"policy version {version} isn't published",
            where=str(run_dir),
            fix=f"choose one of 0..{newest_sealed(store)}"
            if newest_sealed(store) >= 0
            else "start the run with `prime-core train`",
        )
    cache = run_dir / CACHE
    signer = Signer.load(run_dir / layout.KEYS / "trainer.key")
    policy = fetch_policy(
        store, found, run_dir / layout.MODEL, cache, signer_address=signer.address
    )
    drop_cached(cache, keep={found})
    return policy


def policy_of_model(model: ModelSection) -> tuple[PolicyFiles, str]:
    """A model directory (or an installed GGUF file) as version 0, and its digest, hex.

    Raises:
        EngineError: nothing there.
    """
    from prime_core.engines.model_files import local_policy, model_digest, resolve_model
    from prime_core.hub import RunContext

    cache = RunContext.from_environment().cache_dir
    directory = resolve_model(model.path, model.gguf, cache, dtype=model.dtype)
    return local_policy(directory), model_digest(directory)


def run_toml(run: Path) -> Path:
    """The resolved config of a run directory.

    Raises:
        RunError: it isn't one.
    """
    path = run / "run.toml" if run.is_dir() else run
    if not path.is_file():
        raise RunError(
            "not a run directory: it has no run.toml",
            where=str(run),
            fix="give the directory that `prime-core train` made",
        )
    return path
