"""Weights, keys and the calls that tests of policy versions share."""

from __future__ import annotations

import json
from pathlib import Path

from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.objects import ObjectStore
from prime_core.store.policy import (
    fetch_policy,
    write_policy,
)

SIGNER = Signer(b"\x01" * 32)
OTHER = Signer(b"\x02" * 32)
NONCE = b"\x03" * 32
PARENT = b"\x04" * 32


def weights_bytes(sizes: dict[str, int], fill: int = 0) -> bytes:
    """A safetensors file of byte tensors."""
    index, offset, data = {}, 0, b""
    for name, size in sizes.items():
        index[name] = {"dtype": "U8", "shape": [size], "data_offsets": [offset, offset + size]}
        offset += size
        data += bytes((fill + n) % 256 for n in range(size))
    head = json.dumps({"__metadata__": {"format": "pt"}, **index}).encode()
    return len(head).to_bytes(8, "little") + head + data


WEIGHTS = weights_bytes({"b": 700, "a": 300})


def publish(store: ObjectStore, weights: Path, version: int, shard_bytes: int = 250) -> bytes:
    parent = PARENT if version else None
    return write_policy(
        store, version, parent, "demo", weights, SIGNER, shard_bytes=shard_bytes
    ).digest


def fetch(store: ObjectStore, cache: Path, **limits: int) -> bytes:
    policy = fetch_policy(store, 1, cache, cache, signer_address=SIGNER.address, **limits)
    return policy.weights[0].read_bytes()


def objects_of(store: ObjectStore, version: int) -> list[str]:
    """Object paths of a version in the order in which they are written."""
    directory = layout.policy_dir(version)
    lines = [name for name in store.list(directory) if name.startswith("shard")]
    lines.sort(key=lambda name: (name.split(".")[0], name.endswith(".json")))
    return [f"{directory}/{name}" for name in ("header.json", *lines, "seal.json")]
