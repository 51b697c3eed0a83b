"""A proxy that holds every byte back as a long link does: `delay.py HOST:PORT HOST:PORT MS`."""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress

AHEAD = 64 * 2**20  # bytes on their way at once: more than any link of the benchmark holds


async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Bytes of one direction, each after so many seconds, in order."""
    loop = asyncio.get_running_loop()
    writer.transport.set_write_buffer_limits(AHEAD)
    with suppress(ConnectionError):
        while data := await reader.read(256 * 1024):
            loop.call_later(seconds, writer.write, data)
            await writer.drain()
    loop.call_later(seconds, writer.close)


async def main(listen: str, target: str, seconds: float) -> None:
    """Serve until killed."""

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = target.rpartition(":")
        theirs, to_them = await asyncio.open_connection(host, int(port))
        await asyncio.gather(carry(reader, to_them, seconds), carry(theirs, writer, seconds))

    host, _, port = listen.rpartition(":")
    async with await asyncio.start_server(accept, host, int(port)) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) / 1000))
