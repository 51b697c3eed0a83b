"""A shard as what changed since another version: exclusive or, bytes by their place, deflate.

A server makes deltas from the two versions that it holds (`DeltaShop`), a client applies them to
the one that it holds (`take_delta`). Nobody vouches for a delta: the shard that comes out is held
to its line like any other.
"""

from __future__ import annotations

import asyncio
import os
import zlib
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from prime_core.api.errors import IntegrityError
from prime_core.shardcast.connection import Connection, RelayLacks
from prime_core.shardcast.library import Span

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK = 64 * 1024
WIDTH = 4  # bytes of a float32, or of two bfloat16: bytes of one place are alike
LEVEL = 1  # deflate's fastest; the network is what is saved
KEPT_BYTES = 256 * 2**20
MOST_KEPT = 100_000  # also of those that aren't worth it, which take no bytes
QUEUE = 32  # more than a few clients have under way at once
PATIENCE_S = 5.0  # half of what a client waits for the head of an answer


def planes(data: NDArray[np.uint8]) -> bytes:
    """The bytes of a block, those of one place of each word together; a rest stays at the end."""
    whole = len(data) - len(data) % WIDTH
    return data[:whole].reshape(-1, WIDTH).T.tobytes() + data[whole:].tobytes()


def words(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The inverse of `planes`."""
    import numpy as np

    whole = len(data) - len(data) % WIDTH
    return np.concatenate([data[:whole].reshape(WIDTH, -1).T.reshape(-1), data[whole:]])


def make_delta(new: Span, base: Span) -> bytes | None:
    """The delta of a shard, or None where it isn't smaller than the shard.

    Raises:
        OSError: one of the files is gone.
    """
    import numpy as np

    assert new.size == base.size
    packer, parts, size = zlib.compressobj(LEVEL), [], 0
    with new.path.open("rb") as fresh, base.path.open("rb") as old:
        for start in range(0, new.size, BLOCK):
            count = min(BLOCK, new.size - start)
            one = np.frombuffer(os.pread(fresh.fileno(), count, new.offset + start), np.uint8)
            two = np.frombuffer(os.pread(old.fileno(), count, base.offset + start), np.uint8)
            if len(one) != len(two):
                return None
            parts.append(packer.compress(planes(one ^ two)))
            size += len(parts[-1])
            if size >= new.size:
                return None
    parts.append(packer.flush())
    return b"".join(parts) if size + len(parts[-1]) < new.size else None


class DeltaShop:
    """Deltas as they are asked for; the latest stay in memory, as many ask for the same ones.

    They are made in one thread, so that strangers don't get all cores. Nobody waits longer than a
    client's patience: who asks for more than can be made takes whole shards. Used by one loop.

    Args:
        limit: bytes of deltas that are kept.
        patience_s: how long one may take, also one that waits for others.
    """

    def __init__(self, limit: int = KEPT_BYTES, *, patience_s: float = PATIENCE_S) -> None:
        self._limit, self._patience_s, self._size = limit, patience_s, 0
        self._kept: OrderedDict[tuple[int, int, int], bytes | None] = OrderedDict()
        self._making: dict[tuple[int, int, int], asyncio.Task[bytes | None]] = {}
        self._thread = ThreadPoolExecutor(1, "deltas")

    async def get(self, key: tuple[int, int, int], new: Span, base: Span) -> bytes | None:
        """The delta of (version, base, shard); None where the whole shard is better."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        task = self._making.get(key)
        if task is None:
            if len(self._making) >= QUEUE:
                return None
            task = self._making[key] = asyncio.ensure_future(self._make(key, new, base))
        try:
            return await asyncio.wait_for(asyncio.shield(task), self._patience_s)
        except TimeoutError:
            return None  # it's kept for whoever asks later

    def close(self) -> None:
        """Make no more."""
        for task in self._making.values():
            task.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _make(self, key: tuple[int, int, int], new: Span, base: Span) -> bytes | None:
        loop = asyncio.get_running_loop()
        try:
            made = await loop.run_in_executor(self._thread, make_delta, new, base)
        except OSError:  # collected meanwhile
            return None
        finally:
            del self._making[key]
        self._kept[key] = made
        self._size += len(made or b"")
        while (self._size > self._limit or len(self._kept) > MOST_KEPT) and len(self._kept) > 1:
            _, dropped = self._kept.popitem(last=False)
            self._size -= len(dropped or b"")
        return made


class DeltaReader:
    """Applies a delta as its bytes come in.

    Args:
        base: the same shard of the version that it was made from.
        take: gets the new shard's bytes, in order.
    """

    def __init__(self, base: Span, take: Callable[[memoryview], None]) -> None:
        self._base, self._take = base, take
        self._file = base.path.open("rb")
        self._unpacker = zlib.decompressobj()
        self._block = bytearray()
        self._done = 0

    def feed(self, data: memoryview) -> None:
        """Some bytes of the delta; IntegrityError where it can't be one."""
        rest: bytes | memoryview = data
        try:
            while rest:
                self._block += self._unpacker.decompress(rest, BLOCK)
                rest = self._unpacker.unconsumed_tail
                self._apply(last=False)
                if self._unpacker.eof:
                    return
        except zlib.error as error:
            raise _not_a_delta() from error

    def close(self) -> None:
        """The delta has ended; IntegrityError where the shard hasn't."""
        try:
            while not self._unpacker.eof and (more := self._unpacker.decompress(b"", BLOCK)):
                self._block += more
                self._apply(last=False)
            if not self._unpacker.eof or self._unpacker.unused_data:
                raise _not_a_delta()
            self._apply(last=True)
        except zlib.error as error:
            raise _not_a_delta() from error
        if self._done != self._base.size:
            raise _not_a_delta()

    def _apply(self, *, last: bool) -> None:
        import numpy as np

        while self._block:
            count = min(BLOCK, self._base.size - self._done)
            if count == 0:
                raise _not_a_delta()  # more comes out of it than a shard holds
            if len(self._block) < count:
                if last:
                    raise _not_a_delta()
                return
            change = np.frombuffer(bytes(self._block[:count]), np.uint8)
            del self._block[:count]
            offset = self._base.offset + self._done
            old = np.frombuffer(os.pread(self._file.fileno(), count, offset), np.uint8)
            if len(old) != count:
                raise OSError("the base is gone")
            self._take(memoryview((words(change) ^ old).tobytes()))
            self._done += count

    def __enter__(self) -> DeltaReader:
        """For `with`: the base is closed at its end."""
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def take_delta(
    connection: Connection,
    target: str,
    base: Span,
    take: Callable[[memoryview], None],
    cancelled: Callable[[], bool],
) -> bool:
    """Fetch a delta and hand on the shard that it makes; False where the relay has none.

    Raises:
        IntegrityError: it's no delta of a shard of this size.
        RelayError, Cancelled: as `Connection.get_into`.
    """
    try:
        reader = DeltaReader(base, take)
    except OSError:  # the base was dropped
        return False
    with reader:
        try:
            connection.get_into(target, base.size, reader.feed, cancelled, shorter=True)
        except RelayLacks:
            return False
        reader.close()
    return True


def _not_a_delta() -> IntegrityError:
    return IntegrityError("not a delta of this shard", fix="fetch the whole shard")
