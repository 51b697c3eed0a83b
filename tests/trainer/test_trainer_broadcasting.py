"""The trainer publishes boundary weights while it goes on, and hears of what went wrong."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from prime_core.api.errors import StoreError
from prime_core.signing import Signer
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import is_sealed, write_policy
from prime_core.store.trace import Trace, read_trace
from prime_core.trainer import publish as publishing
from prime_core.trainer.broadcasting import Broadcast
from prime_core.trainer.fsdp import World, full_weights
from prime_core.trainer.publish import Publisher


class Policy(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(8, 8))


@pytest.fixture
def parts(tmp_path: Path) -> tuple[ObjectStore, Broadcast, list[int]]:
    store = ObjectStore(str(tmp_path))
    sealed: list[int] = []
    publisher = Publisher(store, tmp_path, "demo", Signer(b"\x01" * 32), b"\x02" * 32, 64)
    return store, Broadcast(publisher, Trace(tmp_path, "trainer"), sealed.append), sealed


def test_published_bytes_are_the_boundary_weights_whatever_trains_meanwhile(
    parts: tuple[ObjectStore, Broadcast, list[int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store, broadcast, sealed = parts
    trained = threading.Event()

    def slow(*args: object, **named: object) -> object:
        assert trained.wait(60)
        return write_policy(*args, **named)

    save = publishing._save

    def slow_save(*args: object) -> None:
        assert trained.wait(60)
        save(*args)

    monkeypatch.setattr(publishing, "_save", slow_save)
    monkeypatch.setattr(publishing.policies, "write_policy", slow)
    policy = Policy()
    optimizer = torch.optim.SGD(policy.parameters(), lr=1.0)
    world = World(rank=0, size=1, device=torch.device("cpu"))
    assert broadcast.start(0, full_weights(policy, world, torch.float32))
    # Back before a byte is on disk: the next optimizer step doesn't wait, nor does it matter.
    assert not is_sealed(store, 0)
    policy.weight.sum().backward()
    optimizer.step()
    trained.set()
    broadcast.finish()
    assert sealed == [0]
    published = load_file(tmp_path / "policies" / "000000" / "weights.safetensors")
    (name,) = published
    assert torch.equal(published[name], torch.ones(8, 8))
    assert not torch.equal(policy.weight, torch.ones(8, 8))
    assert [span["name"] for span in read_trace(tmp_path)["trainer"]] == ["publish"]


def test_versions_follow_each_other_and_a_failure_reaches_the_trainer(
    parts: tuple[ObjectStore, Broadcast, list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, broadcast, sealed = parts
    for version in range(3):
        broadcast.start(version, {"w": torch.full((4,), float(version))})
    broadcast.finish()
    assert sealed == [0, 1, 2]

    def full(*args: object, **named: object) -> None:
        raise StoreError("disk full")

    monkeypatch.setattr(publishing.policies, "write_policy", full)
    broadcast.start(3, {"w": torch.zeros(4)})
    with pytest.raises(StoreError, match="disk full"):
        broadcast.finish()
    broadcast.check()
    assert broadcast.start(2, {"w": torch.full((4,), 2.0)})
    assert not broadcast.start(2, {"w": torch.full((4,), 9.0)})
