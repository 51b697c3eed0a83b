"""A process that only decodes submissions, so that bytes made to harm end it and nothing else.

`python -m prime_core.validation.reader` serves requests on stdin: a line of JSON (size, CPU
seconds, MiB, bounds), then the bytes. It answers each with a line of JSON; `reading` is the other
end.
"""

from __future__ import annotations

import json
import math
import resource
import sys
from typing import Any, BinaryIO

from prime_core.api.errors import FormatError


def main() -> None:
    """Serve until stdin ends."""
    from prime_core.store.submission import Bounds, read_submission

    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer
    _warm_up(read_submission)
    _say(stdout, {"ready": True})
    while line := stdin.readline():
        request = json.loads(line)
        data = stdin.read(request["size"])
        _limit(request["cpu_s"], request["memory_mb"])
        bounds = request["bounds"] and Bounds(**request["bounds"])
        try:
            read_submission(data, bounds=bounds)
        except FormatError as error:
            _say(stdout, {"error": error.what, "where": error.where})
        except MemoryError:
            _say(stdout, {"error": f"needs more than {request['memory_mb']} MiB", "where": None})
        else:
            _say(stdout, {"ok": True})


def _warm_up(read: Any) -> None:
    """Import what reading needs before any limit holds."""
    import pyarrow.parquet  # noqa: F401

    try:
        read(b"PAR1")
    except FormatError:
        return


def _limit(cpu_s: float, memory_mb: int) -> None:
    """Limits of the next file: CPU from now on, address space above what is there."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cpu = math.ceil(usage.ru_utime + usage.ru_stime + cpu_s)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, resource.RLIM_INFINITY))
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # no path, a number
        pages = int(file.read().split()[0])
    space = pages * resource.getpagesize() + memory_mb * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (space, resource.RLIM_INFINITY))


def _say(stdout: BinaryIO, answer: dict[str, Any]) -> None:
    stdout.write(json.dumps(answer).encode() + b"\n")
    stdout.flush()


if __name__ == "__main__":
    main()
