"""The pytest plugin of prime-core: fixtures `isolated_hub` and `make_plugin`.

pytest loads it at every start of any project that has prime-core installed, so nothing of
prime-core is imported before a fixture is used: neither time nor coverage is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from prime_core.hub import Hub
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
