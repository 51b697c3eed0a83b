"""Prepared runs for the worker's tests, and what stands in for trainer and intake."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from prime_core.config.sections import RunConfig
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.rollout.setup import Equipment, equip
from prime_core.rollout.worker import Worker
from prime_core.run.preparation import prepare
from prime_core.signing import Signer
from prime_core.store import layout
from prime_core.store.objects import ObjectStore, open_store
from prime_core.store.policy import read_seal, write_policy
from prime_core.store.records import Closed, ClosedGroup, GroupReceipt, Lock, Receipt
from prime_core.store.submission import Submission, read_submission

ADDITION = {"use": "arithmetic", "with": {"kind": "addition", "digits": 1, "style": "words"}}
RETRY = {
    "use": "arithmetic",
    "name": "retry",
    "with": {"kind": "retry", "digits": 1, "style": "words"},
}


def build_model(directory: Path, **options: Any) -> Path:
    """A model that knows every character that the environments write."""
    symbols = [chr(code) for code in range(32, 127)] + ["\n"]
    return build_tiny_model(directory, symbols=symbols, **options)


def make_config(run_dir: Path, model: Path, **sections: Any) -> RunConfig:
    """A small run of two environments, one of them with two turns."""
    raw: dict[str, Any] = {
        "run": {"dir": str(run_dir), "id": "worker-test"},
        "model": {"path": str(model)},
        "engine": {
            "max_tokens": 48,
            "max_prompt_tokens": 300,
            "groups_per_submission": 6,
            "with": {"batch_size": 8},
        },
        "trainer": {"steps": 2, "groups_per_step": 6, "group_size": 4},
        "async": {"level": 0},
        "environments": [ADDITION, RETRY],
    }
    for name, values in sections.items():
        key = name.rstrip("_")
        raw[key] = {**raw.get(key, {}), **values} if isinstance(values, dict) else values
    return RunConfig.model_validate(raw)


def publish(config: RunConfig, version: int) -> None:
    """Seal a policy version; all have version 0's weights."""
    store, run_dir = open_store(config), config.run.dir
    signer = Signer.load(run_dir / layout.KEYS / "trainer.key")
    parent = read_seal(store, version - 1, signer_address=signer.address) if version else None
    weights = run_dir / layout.MODEL / "model.safetensors"
    nonce = bytes(32) if version == 0 else None
    write_policy(store, version, parent, config.run.id or "", weights, signer, nonce=nonce)


def prepared(run_dir: Path, model: Path, **sections: Any) -> RunConfig:
    """A prepared run with version 0 sealed; the trainer's key is the same in every run."""
    config = make_config(run_dir, model, **sections)
    run_dir.mkdir(parents=True)
    (run_dir / layout.RUN).write_text("# resolved elsewhere\n")
    key = run_dir / layout.KEYS / "trainer.key"
    key.parent.mkdir(mode=0o700)
    key.touch(mode=0o600)
    key.write_text("0x" + "11" * 32 + "\n")
    prepare(config)
    publish(config, 0)
    return config


def read(store: ObjectStore, step: int, node: str = "worker-0", n: int = 0) -> Submission:
    return read_submission(store.get(layout.submission_path(step, node, n)))


def receive(store: ObjectStore, step: int, node: str = "worker-0", n: int = 0) -> list[str]:
    """Write an accepting receipt; the group ids."""
    submission = read(store, step, node, n)
    groups = tuple(GroupReceipt(id, "signal", "", 4) for id in submission.groups())
    receipt = Receipt("worker-test", step, node, n, submission.sha256, "accepted", "", groups)
    store.put(layout.receipt_path(step, node, n), receipt.to_json())
    return [group.id for group in groups]


def close(store: ObjectStore, step: int, groups: list[str]) -> None:
    """Close a step on groups of its first submission."""
    path = layout.submission_path(step, "worker-0", 0)
    entries = tuple(ClosedGroup(group, path, "0" * 64) for group in groups)
    store.put(layout.closed_path(step), Closed("worker-test", step, entries, step).to_json())


def lock_of(store: ObjectStore) -> Lock:
    return Lock.from_json(store.get(layout.LOCK))


class Opened:
    """A worker with its equipment, closed at the end of the block."""

    def __init__(self, config: RunConfig, node: str = "worker-0") -> None:
        self._config, self._node = config, node
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> tuple[Worker, Equipment]:
        equipment = await equip(self._config, self._node, self._stack)
        return Worker(equipment), equipment

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()
