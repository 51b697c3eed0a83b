"""Entry point of a host: `python -m prime_core.hosting.host`, started by a pool, never by hand.

The process splits at once: the parent half becomes the keeper, which loads no plugin and outlives
whatever the other half does; the child half serves. Invariant: nothing heavy is imported before
the split, so that a keeper costs a few MiB.
"""

from __future__ import annotations

import fcntl
import os
import resource
import signal
import socket
import sys
from typing import NoReturn

from prime_core.hosting import keeper


def main(arguments: list[str]) -> int:
    """Split into keeper and host.

    Args:
        arguments: file descriptors of requests, responses and control, the parent's process id,
            the log's path and its limit in bytes.
    """
    requests, responses, control, parent = (int(text) for text in arguments[:4])
    log_path, log_limit = arguments[4], int(arguments[5])
    signal.pthread_sigmask(signal.SIG_SETMASK, [])  # the pool's process may have blocked some
    # Before the split: what dies with the pool must not miss its death.
    keeper.die_with_parent(signal.SIGTERM, parent)
    keeper.adopt_orphans()
    log_read, log_write = os.pipe()
    keeper_id = os.getpid()
    host = os.fork()
    if host == 0:
        os.close(control)
        os.close(log_read)
        _become_host(requests, responses, log_write, keeper_id)
    for descriptor in (requests, responses, log_write):
        os.close(descriptor)
    with socket.socket(fileno=control) as channel:
        return keeper.keep(host, channel, log_read, keeper.BoundedLog(log_path, log_limit))


def _become_host(requests: int, responses: int, log: int, keeper_id: int) -> NoReturn:
    os.setsid()
    keeper.die_with_parent(signal.SIGKILL, keeper_id)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    requests, responses = _move_up(requests), _move_up(responses)
    null = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(log)
    os.close(null)
    from prime_core.hosting.serve import serve

    serve(requests, responses)
    os._exit(0)  # no exit handlers and no waiting for threads: the environment is done


def _move_up(descriptor: int) -> int:
    """The same pipe at the top of the descriptor table, where a plugin's closes don't reach."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    floor = max(64, min(limit, 1024) - 16)
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, floor)
    os.close(descriptor)
    return moved


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
