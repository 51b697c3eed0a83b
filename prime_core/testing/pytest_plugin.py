"""The pytest plugin of prime-core: isolated_hub, make_plugin, choose, plugin_context, jails.

pytest loads it at every start of any project that has prime-core installed, so nothing of
prime-core is imported before a fixture is used: neither time nor coverage is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from prime_core.api import Sandbox
    from prime_core.config.sections import PluginChoice
    from prime_core.hub import Hub, RunContext
    from prime_core.testing.isolation import PluginMaker

pytest.register_assert_rewrite("prime_core.testing.contract")


@pytest.fixture
def isolated_hub(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """An empty hub; while the test runs, looking for installed plugins is an error."""
    from prime_core.testing import isolation

    return isolation.isolate(monkeypatch)


@pytest.fixture
def make_plugin(isolated_hub: Hub) -> Iterator[PluginMaker]:
    """A maker of in-memory plugins, each under a fake distribution of `isolated_hub`."""
    from prime_core.testing.isolation import PluginMaker

    with PluginMaker(isolated_hub) as maker:
        yield maker


@pytest.fixture
def choose() -> Callable[..., PluginChoice]:
    """Writes a plugin choice as a run config would: `choose("parity", strict=True)`."""
    from prime_core.config.sections import PluginChoice

    def choice(use: str, version: str = "", **params: object) -> PluginChoice:
        return PluginChoice.model_validate({"use": use, "version": version, "with": params})

    return choice


@pytest.fixture
def plugin_context(tmp_path: Path) -> RunContext:
    """A context outside any run, with a cache of the test's own and nothing to be fetched."""
    from prime_core.hub import RunContext

    return RunContext(run_dir=None, cache_dir=tmp_path / "cache", offline=True)


@pytest.fixture(scope="session")
def jails(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """The sandbox that hosts use by default, with real jails; skips where it can launch none."""
    from prime_core.api import Sandbox
    from prime_core.config.sections import PluginChoice
    from prime_core.hub import Hub, RunContext
    from prime_core.hub.sandboxes import DEFAULT

    context = RunContext(run_dir=None, cache_dir=tmp_path_factory.mktemp("cache"), offline=True)
    sandbox = Hub.discover().make("sandbox", PluginChoice(use=DEFAULT), context)
    assert isinstance(sandbox, Sandbox)
    if sandbox.probe().level == "none":
        pytest.skip("no jail can be launched here; prime-core doctor sandbox says why")
    yield sandbox
    sandbox.close()
