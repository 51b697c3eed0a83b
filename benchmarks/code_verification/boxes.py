"""Sandboxes and verifiers as a host makes them, in this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox
from prime_core.config.sections import PluginChoice
from prime_core.hub import Hub, RunContext


@contextmanager
def open_sandbox(cache: Path, name: str = "nsjail", warm: int = 2) -> Iterator[Sandbox]:
    """A sandbox; every jail of it is gone behind the block."""
    choice = PluginChoice.model_validate({"use": name, "with": {"warm": warm}})
    made = Hub.discover().make("sandbox", choice, RunContext(None, cache, offline=True))
    assert isinstance(made, Sandbox)
    try:
        made.probe()
        yield made
    finally:
        made.close()


@contextmanager
def open_verifier(cache: Path) -> Iterator[CodeVerifier]:
    """The verifier over the default sandbox."""
    with open_sandbox(cache) as sandbox:
        yield CodeVerifier(CodeParams(), sandbox)
