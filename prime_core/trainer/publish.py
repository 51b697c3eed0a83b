"""Policy versions out of the trainer: to disk first, then into the store, never twice.

`train.py` publishes on rank 0. What a killed trainer had begun to publish is finished from the
file it left, and weights of a version that stands already are compared with it, byte for byte.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from blake3 import blake3
from torch import Tensor

from prime_core.signing import Signer
from prime_core.store import policy as policies
from prime_core.store.layout import MODEL, parse_numbered, policy_dir, policy_weights_path
from prime_core.store.objects import ObjectStore

logger = logging.getLogger(__name__)

SERVED = "served"  # local directory of the run: weights of the version that is being published
SCRATCH = ".fetched-policy-"
WEIGHTS = Path(policy_weights_path(0)).name


class Publisher:
    """The trainer's hand on `policies/`.

    Args:
        store: of the run.
        run_dir: its local directory.
        run_id: stands in every header.
        signer: the trainer's key.
        nonce: 32 bytes for version 0's header, so that runs with one id repeat each other; None
            draws it, which is what a run with strangers needs: nobody may know the first beacon
            before version 0 is sealed.
        shard_bytes: size of a shard; None for one shard: nothing is cut on one machine.
    """

    def __init__(
        self,
        store: ObjectStore,
        run_dir: Path,
        run_id: str,
        signer: Signer,
        nonce: bytes | None = None,
        shard_bytes: int | None = None,
    ) -> None:
        self._store = store
        self._run_dir = run_dir
        self._run_id = run_id
        self._signer = signer
        self._oldest = 1  # versions from this one on may still hold weights
        self._nonce = nonce
        self._shard_bytes = shard_bytes

    def is_sealed(self, version: int) -> bool:
        """Whether a version is published already."""
        return policies.is_sealed(self._store, version)

    def finish_started(self) -> None:
        """Seal what a killed trainer left on disk without its seal; drop its scratch."""
        for scratch in self._run_dir.glob(f"{SCRATCH}*"):
            shutil.rmtree(scratch)
        for file in sorted((self._run_dir / SERVED).glob("*.safetensors")):
            version = parse_numbered(file.stem)
            if version is not None and not policies.is_sealed(self._store, version):
                logger.warning("policy version %d was half published; finishing it", version)
                self._write(version, file)

    def publish(self, version: int, weights: dict[str, Tensor]) -> bool:
        """Seal a version, or compare with the sealed one; whether the weights are the sealed ones.

        They differ only where training the same batch again gave other bits, which on CPU is a
        defect and on GPUs can happen. The sealed version stands; workers have used it.
        """
        served = self._run_dir / SERVED
        served.mkdir(parents=True, exist_ok=True)
        file = served / f"{version:06d}.safetensors"
        fresh = file.with_name(f".{file.name}")
        _save(weights, fresh)
        if policies.is_sealed(self._store, version):
            same = self._equals_sealed(version, fresh)
            fresh.unlink()
            if not same:
                logger.error(
                    "policy version %d was trained again from the same batch with other bits than "
                    "the published ones; the published version stands, and this trainer goes on "
                    "from its own weights",
                    version,
                )
            return same
        fresh.rename(file)
        self._write(version, file)
        for old in served.glob("*.safetensors"):
            if old != file:
                old.unlink()
        return True

    @contextmanager
    def fetched(self, version: int) -> Iterator[tuple[Path, ...]]:
        """The files of a published version, verified, for as long as the block lasts."""
        with TemporaryDirectory(dir=self._run_dir, prefix=SCRATCH) as scratch:
            yield policies.fetch_policy(
                self._store,
                version,
                self._run_dir / MODEL,
                Path(scratch),
                signer_address=self._signer.address,
            ).weights

    def drop_weights(self, newest: int, keep: int, needed_from: int) -> None:
        """Delete the weights of old versions; their headers, lines and seals stay.

        Kept are version 0, the newest `keep` versions, and all from `needed_from` on, which a
        trainer that resumes from its checkpoint measures the mismatch with. A worker that has
        loaded or linked a file keeps it. A remote store keeps everything: that is for its own
        lifecycle rules.
        """
        oldest = min(newest - keep + 1, needed_from)
        for version in range(self._oldest, oldest):
            directory = self._store.local_path(policy_dir(version))
            if directory is None:
                continue
            for held in (directory / WEIGHTS, *directory.glob("shard-*.bin")):
                held.unlink(missing_ok=True)
        self._oldest = max(self._oldest, oldest)

    def _equals_sealed(self, version: int, file: Path) -> bool:
        """Whether a file holds what was sealed, by the hashes of the shards."""
        sealed = policies.read_manifest(self._store, version, signer_address=self._signer.address)
        with file.open("rb") as handle:
            hashes = [blake3(handle.read(shard.size)).digest() for shard in sealed.shards]
            whole = handle.read(1) == b""
        return whole and hashes == [shard.blake3 for shard in sealed.shards]

    def _write(self, version: int, file: Path) -> None:
        parent = None
        if version > 0:
            parent = policies.read_seal(self._store, version - 1, self._signer.address)
        policies.write_policy(
            self._store,
            version,
            parent,
            self._run_id,
            file,
            self._signer,
            nonce=self._nonce if version == 0 else None,
            shard_bytes=self._shard_bytes or max(1, file.stat().st_size),
            linked=True,
        )


def _save(weights: dict[str, Tensor], file: Path) -> None:
    """Equal tensors give equal bytes: safetensors orders them, and there is no time stamp."""
    from safetensors.torch import save_file

    save_file(weights, file, metadata={"format": "pt"})
    with file.open("rb+") as handle:
        os.fsync(handle.fileno())
