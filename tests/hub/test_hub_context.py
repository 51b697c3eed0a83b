"""The context that factories get."""

from __future__ import annotations

from pathlib import Path

from prime_core.hub import RunContext


def test_the_cache_follows_the_environment(tmp_path):
    def cache(**environ: str) -> Path:
        return RunContext.from_environment(environ=environ).cache_dir

    assert cache(PRIME_CORE_CACHE="/c", XDG_CACHE_HOME="/x") == Path("/c")
    assert cache(XDG_CACHE_HOME="/x") == Path("/x/prime-core")
    assert cache() == Path.home() / ".cache" / "prime-core"


def test_offline_is_said_by_the_environment(tmp_path):
    assert RunContext.from_environment(environ={"PRIME_CORE_OFFLINE": "1"}).offline
    assert not RunContext.from_environment(environ={"PRIME_CORE_OFFLINE": "0"}).offline
    assert RunContext.from_environment(tmp_path, environ={}).run_dir == tmp_path
