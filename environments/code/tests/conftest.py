"""One sandbox for all tests of this folder; its jails are real."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from prime_core.api import Sandbox, SandboxError
from prime_core.config.sections import PluginChoice
from prime_core.hub import Hub, RunContext


@pytest.fixture(scope="session")
def jails(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The sandbox that hosts use by default; skips where it can't launch anything."""
    cache: Path = tmp_path_factory.mktemp("cache")
    context = RunContext(run_dir=None, cache_dir=cache, offline=True)
    sandbox = Hub.discover().make("sandbox", PluginChoice(use="nsjail"), context)
    assert isinstance(sandbox, Sandbox)
    try:
        level = sandbox.probe().level
    except SandboxError as error:
        pytest.skip(f"no jail can be launched here: {error}")
    if level == "none":
        pytest.skip("no jail can be launched here; prime-core doctor sandbox says why")
    yield sandbox
    sandbox.close()
