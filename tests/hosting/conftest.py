"""A distribution with hostile graders, on the hosts' path and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hosting_support import Opened, write_distribution

from prime_core.config.sections import EnvironmentChoice, HostingSection, PluginChoice
from prime_core.hosting.keeper import descendants
from prime_core.hosting.pool import HostPool

HERE = Path(__file__).parent

ENTRY_POINTS = """[prime_core]
environment.hostile = prime_env_hostile
verifier.hostile = prime_env_hostile
reward.hostile = prime_env_hostile
environment.broken_import = prime_env_broken_import
"""


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("site")
    modules = {
        "prime_env_hostile": (HERE / "hostile_plugin.txt").read_text(),
        "prime_env_broken_import": "print('about to fail')\nimport surely_absent_module\n",
    }
    write_distribution(root, "prime-env-hostile", modules, ENTRY_POINTS)
    return root


@pytest.fixture
def on_path(site: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTHONPATH", str(site))
    return site


@pytest.fixture
def open_pool(on_path: Path, tmp_path: Path) -> Opened:
    """Opens a pool of hostile hosts; keywords are hosting settings, `params` the environment's."""

    async def open_(
        *, params: dict[str, object] | None = None, use: str = "hostile", **hosting: object
    ) -> HostPool:
        return await HostPool.open(
            EnvironmentChoice.model_validate({"use": use, "with": params or {}}),
            PluginChoice(use="hostile"),
            HostingSection.model_validate({"time_limit_s": 20.0, **hosting}),
            cache_dir=tmp_path / "cache",
            run_dir=None,
            log_dir=tmp_path / "logs",
        )

    return open_


@pytest.fixture
def no_process_left() -> Iterator[None]:
    """Fails the test that leaves a child process behind."""
    before = set(descendants(os.getpid()))
    yield
    assert set(descendants(os.getpid())) <= before
