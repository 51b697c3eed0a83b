"""The loop of a host: reads a request, makes the call for each item, reports each as it's done.

Runs in the child half of `prime_core.hosting.host`. Invariant: whatever an item raises becomes
that item's error; only what ends the process ends the loop.
"""

from __future__ import annotations

import os
import resource
import sys
import traceback
from typing import TYPE_CHECKING, Any

from prime_core.api.errors import FormatError, PrimeError
from prime_core.hosting.protocol import PREFIX, PROTOCOL_VERSION, decode, encode

if TYPE_CHECKING:
    from prime_core.hosting.environment import HostedEnvironment
    from prime_core.hosting.residue import Baseline
    from prime_core.hosting.verifier_host import HostedVerifier

    Hosted = HostedEnvironment | HostedVerifier

DETAIL_LIMIT = 600  # characters of an error's text


class Pipes:
    """The two ends of a host's pipes."""

    def __init__(self, requests: int, responses: int) -> None:
        self._requests = requests
        self._responses = responses
        self._process = os.getpid()

    def read(self) -> dict[str, Any] | None:
        """The next request; None when the pool closed its end."""
        prefix = self._exactly(PREFIX)
        if prefix is None:
            return None
        body = self._exactly(int.from_bytes(prefix, "big"))
        return None if body is None else decode(body)

    def _exactly(self, size: int) -> bytes | None:
        chunks: list[bytes] = []
        while size:
            chunk = os.read(self._requests, min(size, 1 << 20))
            if not chunk:
                return None
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def write(self, message: dict[str, Any]) -> None:
        """Send one message."""
        if os.getpid() != self._process:
            os._exit(70)  # a child that a plugin forked and let run back into our loop
        data = memoryview(encode(message))
        while data:
            data = data[os.write(self._responses, data) :]


def serve(requests: int, responses: int) -> None:
    """Serve until the pool closes its end."""
    pipes = Pipes(requests, responses)
    first = pipes.read()
    if first is None:
        return
    opened = _open(pipes, first)
    if opened is None:
        return
    hosted, baseline = opened
    while (request := pipes.read()) is not None:
        reason = _serve_request(pipes, request, hosted, baseline)
        pipes.write({"id": request["id"], "done": True, "recycle": reason})


def _open(pipes: Pipes, request: dict[str, Any]) -> tuple[Hosted, Baseline] | None:
    if request.get("protocol") != PROTOCOL_VERSION:
        detail = (
            f"the pool speaks protocol {request.get('protocol')}, this interpreter's prime-core "
            f"speaks {PROTOCOL_VERSION}; install the same prime-core in both"
        )
        pipes.write({"id": request["id"], "error": {"kind": "protocol", "detail": detail}})
        return None
    limit = int(request["memory_mb"]) << 20
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    try:
        from prime_core.hosting.residue import Baseline

        # The hub reads env:NAME parameters from here; what a plugin starts later needn't see them.
        os.environ.update(request["variables"])
        hosted = _make(request)
        description = hosted.describe(bool(request["full"]))
        for name in request["variables"]:
            os.environ.pop(name, None)
        baseline = Baseline(hosted.sandboxes.processes)
        pipes.write({"id": request["id"], "item": 0, "ok": description})
    except BaseException as error:  # noqa: BLE001 - the boundary: SystemExit is an error here too
        pipes.write({"id": request["id"], "error": describe_error(error)})
        return None
    pipes.write({"id": request["id"], "done": True, "recycle": None})
    return hosted, baseline


def _make(request: dict[str, Any]) -> Hosted:
    if request["environment"] is None:
        from prime_core.hosting.verifier_host import HostedVerifier

        return HostedVerifier(request)
    from prime_core.hosting.environment import HostedEnvironment

    return HostedEnvironment(request)


def _serve_request(
    pipes: Pipes, request: dict[str, Any], hosted: Hosted, baseline: Baseline
) -> str | None:
    """Report every item; stops early with a reason where this process must not go on."""
    call = hosted.calls[request["call"]]
    for index, item in enumerate(request["items"]):
        report: dict[str, Any] = {"id": request["id"], "item": index}
        reason = None
        try:
            baseline.before_item()
            report["ok"] = call(item)
            pipes.write(report)
        except BaseException as error:  # noqa: BLE001 - the boundary: SystemExit is an error here
            report.pop("ok", None)
            reason = "memory ran out" if isinstance(error, MemoryError) else None
            report["error"] = describe_error(error)
            pipes.write(report)
        reason = baseline.after_item() or reason
        if reason is not None:
            return reason
    return None


def describe_error(error: BaseException) -> dict[str, Any]:
    """An exception as the pool gets it; its traceback goes to the log.

    Of our own errors only the plugin's exception behind them is logged: they say the rest.
    """
    from pydantic import ValidationError

    behind = error.__cause__ if isinstance(error, PrimeError) else error
    try:
        if behind is not None and not isinstance(behind, ValidationError):
            traceback.print_exception(behind)
    except BaseException as failure:  # noqa: BLE001 - stderr may be closed, __str__ may raise
        printed = f"; its traceback can't be printed: {type(failure).__name__}"
    else:
        printed = ""
    found: dict[str, Any] = {"kind": _kind(error)}
    if isinstance(error, PrimeError):
        found |= {"detail": error.what, "where": error.where, "fix": error.fix}
        return found
    try:
        text = str(error)
    except BaseException as failure:  # noqa: BLE001 - an exception's own __str__ may raise
        text = f"its text can't be read: {type(failure).__name__}"
    found["detail"] = f"{type(error).__name__}: {text}"[:DETAIL_LIMIT] + printed
    frames = traceback.extract_tb(error.__traceback__)
    if frames:
        found["where"] = f"{frames[-1].filename}:{frames[-1].lineno}"
    return found


def _kind(error: BaseException) -> str:
    if isinstance(error, MemoryError) or isinstance(error.__cause__, MemoryError):
        return "memory"
    if isinstance(error, FormatError):
        return "value"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if isinstance(error, ValueError) and trace is not None:
        owner = sys.modules.get("prime_core.api.types")
        if owner is not None and trace.tb_frame.f_globals is vars(owner):
            return "value"  # a Score that refuses to be made: non-finite, or status without value
    return "exception"
