"""The thread that speaks with the child: starts it, feeds it, and starts it anew when it dies.

Made by `engine`. Commands come from any thread, messages from the child, and one loop takes both in
order. Invariant: what was generated before vLLM died is kept, and the rest is asked for again; a
request ends with an error only where vLLM dies again and again without one new token.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from prime_core.api import EngineError
from prime_core.engines.vllm.arriving import Arrivals
from prime_core.engines.vllm.process import Child, Message
from prime_core.engines.vllm.work import Generating, Prefilling

logger = logging.getLogger("prime_core.engines.vllm")

# Deaths in a row without a new token, after which vLLM is given up.
TRIES = 3


class Driver:
    """One vLLM process at a time and all that is asked of it.

    Args:
        start: called to start a child; it gets where to deliver messages.
        dtype: of the hidden states.
        hang_s: longest silence while there is work.
    """

    def __init__(
        self,
        start: Callable[[Callable[[Message | None], None]], tuple[Child, dict[str, Any]]],
        *,
        dtype: str,
        start_s: float,
        hang_s: float,
    ) -> None:
        self._start = start
        self._start_s, self._hang_s = start_s, hang_s
        self._inbox: queue.Queue[Callable[[], None]] = queue.Queue()
        self._child: Child | None = None
        self._generation = 0
        self._deaths = 0
        self._under_way = Arrivals(dtype)
        self._ready = False
        self._waiting: Future[dict[str, Any]] | None = None
        self._closed = False
        self.figures: dict[str, float] = {}
        self.restarts = 0
        self._thread = threading.Thread(target=self._run, name="vllm driver", daemon=True)
        self._thread.start()

    # --- called from any thread ----------------------------------------------------------------

    def begin(self, works: Sequence[Generating | Prefilling]) -> None:
        """Ask for several at once: they enter vLLM's queue together, in this order."""
        self._inbox.put(lambda: self._begin(works))

    def cancel(self, keys: Sequence[str]) -> None:
        """End requests; those that haven't ended come back with finish reason cancelled."""
        self._inbox.put(lambda: self._cancel(keys))

    def restart(self) -> Future[dict[str, Any]]:
        """Start the child anew, or for the first time; resolves to what it says of itself."""
        result: Future[dict[str, Any]] = Future()
        self._inbox.put(lambda: self._open(result))
        return result

    def reload(self, path: Path) -> Future[dict[str, Any]]:
        """Load weights from a directory; resolves when they are loaded, or to an error."""
        result: Future[dict[str, Any]] = Future()
        self._inbox.put(lambda: self._reload(path, result))
        return result

    @property
    def pid(self) -> int | None:
        """Of the child; None without one."""
        return self._child.pid if self._child is not None else None

    def close(self) -> None:
        """End the child and the thread; what isn't finished ends with an error."""
        self._inbox.put(self._close)
        self._thread.join()
        self._under_way.close()

    @property
    def _work(self) -> dict[str, Generating | Prefilling]:
        return self._under_way.work

    # --- the loop ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            try:
                self._inbox.get(timeout=self._patience())()
            except queue.Empty:
                self._hung()
            except Exception as error:  # noqa: BLE001 - a dead thread would leave everyone waiting
                self._broken(error)

    def _patience(self) -> float | None:
        if self._child is None or (self._ready and not self._work and self._waiting is None):
            return None
        return self._hang_s if self._ready and self._waiting is None else self._start_s

    def _hung(self) -> None:
        assert self._child is not None
        patience = self._patience() or 0.0
        self._child.kill()
        self._lost(self._child.gone(f"said nothing for {patience:.0f} s and was killed"))

    def _broken(self, error: Exception) -> None:
        """Something of ours failed (a caller's callback, perhaps): whoever waits hears of it."""
        logger.exception("the engine vllm failed; what was under way ends with an error")
        if self._child is not None:
            self._child.kill()
        self._child, self._ready = None, False
        failed = EngineError(
            f"{type(error).__name__}: {error}",
            where="engine vllm",
            fix="the log has the traceback; the next request starts vLLM anew",
        )
        result, self._waiting = self._waiting, None
        if result is not None:
            result.set_exception(failed)
        self._give_up(failed)

    def _take(self, generation: int, message: Message | None) -> None:
        if generation != self._generation or self._child is None:
            return  # of a child that is no more
        if message is None:
            self._lost(self._child.gone())
            return
        header, blobs = message
        kind = header["kind"]
        if kind == "tokens":
            self._deaths = 0
            self._under_way.tokens(header["tokens"], blobs[0] if blobs else b"")
        elif kind == "prefilled":
            self._deaths = 0
            self._under_way.prefilled(header, blobs)
        elif kind == "stepped":
            self.figures = header["figures"]
        elif kind == "cancelled":
            for key in header["keys"]:
                self._under_way.end(key, "cancelled")
        else:  # started, reloaded
            self._ready = True
            result, self._waiting = self._waiting, None
            if result is not None:
                result.set_result(header)
            if kind == "started":
                self._resend()

    def _open(self, result: Future[dict[str, Any]]) -> None:
        if self._child is not None:
            self._child.kill()
        try:
            self._launch()
        except EngineError as error:
            result.set_exception(error)
            return
        self._waiting = result

    def _launch(self) -> None:
        self._generation += 1
        generation = self._generation
        self._ready = False
        self._child = None

        def deliver(message: Message | None) -> None:
            self._inbox.put(lambda: self._take(generation, message))

        child, first = self._start(deliver)
        self._child = child
        child.send("start", **first)

    def _lost(self, error: EngineError) -> None:
        """The child is gone: start another and go on, or give up what is waiting."""
        self._child, was_ready = None, self._ready
        self._ready = False
        result, self._waiting = self._waiting, None
        self._deaths += 1
        if result is not None or not was_ready or self._deaths > TRIES:
            if result is not None:
                result.set_exception(error)
            self._give_up(error)
            return
        self._end_cancelled()
        if not self._work:
            return  # the next load or request starts it
        logger.error("%s; starting it anew for %d requests", error.what, len(self._work))
        self.restarts += 1
        try:
            self._launch()
        except EngineError as again:
            self._give_up(again)

    def _give_up(self, error: EngineError) -> None:
        self._deaths = 0
        self._under_way.give_up(error)

    def _close(self) -> None:
        self._closed = True
        if self._child is not None:
            self._child.close()
        gone = EngineError("the engine was closed", where="engine vllm", fix="open another")
        if self._waiting is not None:
            self._waiting.set_exception(gone)
        self._give_up(gone)

    # --- requests ------------------------------------------------------------------------------

    def _begin(self, works: Sequence[Generating | Prefilling]) -> None:
        self._work.update({work.key: work for work in works})
        if self._child is None:
            try:
                self._launch()
            except EngineError as error:
                self._give_up(error)
        elif self._ready:
            self._post(works)

    def _resend(self) -> None:
        self._post(list(self._work.values()))

    def _post(self, works: Sequence[Generating | Prefilling]) -> None:
        assert self._child is not None
        requests = [work.message() for work in works if isinstance(work, Generating)]
        jobs = [work.message() for work in works if isinstance(work, Prefilling)]
        if requests:
            self._child.send("generate", requests=requests)
        if jobs:
            self._child.send("prefill", jobs=jobs)

    def _cancel(self, keys: Sequence[str]) -> None:
        known = [key for key in keys if isinstance(self._work.get(key), Generating)]
        for key in known:
            self._work[key].cancelled = True
        if self._child is None or not self._ready:
            self._end_cancelled()
        elif known:
            self._child.send("cancel", keys=known)

    def _end_cancelled(self) -> None:
        """vLLM can't end them: it's gone, or doesn't know them yet."""
        for key in [key for key, work in self._work.items() if work.cancelled]:
            self._under_way.end(key, "cancelled")

    def _reload(self, path: Path, result: Future[dict[str, Any]]) -> None:
        # vLLM hears of cancelled ones before it hears of the weights.
        if wanted := sum(not work.cancelled for work in self._work.values()):
            result.set_exception(
                EngineError(
                    f"{wanted} requests are under way",
                    where="engine vllm",
                    fix="load between streams",
                )
            )
            return
        if self._child is None or not self._ready:
            self._end_cancelled()
            self._open(result)
            return
        self._waiting = result
        self._child.send("reload", path=str(path))
