"""The child process: builds vLLM, and steps it while it answers the engine's messages.

Started by `process.Child` as `python -m prime_core.engines.vllm.child READ WRITE PARENT`. It ends
when its pipe is closed, or with its parent. Nothing but the two pipes connects them, so that
whatever happens to vLLM (a crash, the out-of-memory killer, a hang) costs the engine a restart.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
from typing import Any

from prime_core.engines.vllm.link import Link

_PR_SET_PDEATHSIG = 1


def main(reading: int, writing: int, parent: int) -> int:
    """Serve until the engine closes the pipe."""
    _die_with(parent)
    for descriptor in (reading, writing):
        os.set_inheritable(descriptor, False)  # vLLM's own processes have no business with them
    link = Link(reading, writing)
    messages: queue.Queue[tuple[dict[str, Any], list[bytes]] | None] = queue.Queue()

    def read() -> None:
        try:
            while True:
                messages.put(link.receive())
        except EOFError:
            messages.put(None)

    threading.Thread(target=read, daemon=True).start()
    first = messages.get()
    if first is None:
        return 0
    from prime_core.engines.vllm.serving import Server

    server = Server(link, first[0])
    while True:
        try:
            message = messages.get(block=not server.busy)
        except queue.Empty:
            server.step()
            continue
        if message is None or message[0]["kind"] == "close":
            return 0
        server.answer(message[0])


def _die_with(parent: int) -> None:
    """A child that outlived its engine would hold the model's memory for nobody."""
    import ctypes

    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit(1)


if __name__ == "__main__":
    # vLLM's own threads and processes don't keep a finished child alive.
    code = main(*(int(argument) for argument in sys.argv[1:4]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
