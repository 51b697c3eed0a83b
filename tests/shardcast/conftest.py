"""Fixtures of the shardcast tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shardcast_network import two_hosts


@pytest.fixture
def network() -> Iterator[None]:
    """A host for servers, and another with the addresses of all clients."""
    with two_hosts():
        yield
