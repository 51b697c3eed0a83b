"""What an origin makes of a store that isn't as the trainer wrote it."""

from __future__ import annotations

from pathlib import Path

import pytest
from shardcast_support import client, origin, publish

from prime_core.shardcast.library import StoreLibrary
from prime_core.store import layout
from prime_core.store.objects import ObjectStore


@pytest.mark.parametrize(
    "name",
    [
        layout.policy_header_path(1),
        layout.policy_line_path(1, 2),
        layout.policy_seal_path(1),
    ],
)
def test_a_damaged_message_costs_its_version_and_no_other(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = [publish(tmp_path / "run", version) for version in range(3)]
    (tmp_path / "run" / name).write_bytes(b"{")
    with origin(tmp_path / "run") as url:
        one = client([url], tmp_path / "client")
        assert one.versions() == {0: True, 2: True}
        assert one.fetch(2).weights.read_bytes() == data[2]
        assert one.fetch(0).weights.read_bytes() == data[0]
    told = [each.getMessage() for each in caplog.records if each.levelname == "ERROR"]
    assert len(told) == 1
    assert name in told[0]
    assert "start the origin again" in told[0]


def test_a_version_that_is_damaged_in_mid_publication_ends_and_the_next_is_served(
    tmp_path: Path,
) -> None:
    publish(tmp_path / "scratch", 0)
    publish(tmp_path / "scratch", 1)
    scratch, run = tmp_path / "scratch", tmp_path / "run"
    (scratch / layout.policy_line_path(0, 3)).write_bytes(b"{")
    run.mkdir()
    library = StoreLibrary(ObjectStore(str(run)))
    (scratch / "policies/000001").rename(tmp_path / "later")
    (scratch / "policies").rename(run / "policies")
    assert library.refresh()
    assert library.listing() == []
    assert library.gone(0)
    assert library.messages(0, 0) is None
    assert not library.refresh()
    (tmp_path / "later").rename(run / "policies/000001")
    assert library.refresh()
    assert [each.version for each in library.listing() if each.sealed] == [1]
