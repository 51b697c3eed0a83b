"""The thread that speaks with the child: starts it, feeds it, and starts it anew when it dies.

Made by `engine`. Commands come from any thread, messages from the child, and one loop takes both in
order. Invariant: what was generated before vLLM died is kept, and the rest is asked for again; a
request ends with an error only where vLLM dies again and again without one new token.
"""

from __future__ import annotations

import logging
import math
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from prime_core.api import EngineError, Prefill, PrefillDraws
from prime_core.engines.vllm.process import Child, Message
from prime_core.engines.vllm.work import Generating, Prefilling
from prime_core.toploc import INTERVAL

logger = logging.getLogger("prime_core.engines.vllm")

# Deaths in a row without a new token, after which vLLM is given up.
TRIES = 3
_DTYPES = {"float32": 4, "bfloat16": 2}


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
        self._dtype = dtype
        self._start_s, self._hang_s = start_s, hang_s
        self._inbox: queue.Queue[Callable[[], None]] = queue.Queue()
        self._child: Child | None = None
        self._generation = 0
        self._deaths = 0
        self._work: dict[str, Generating | Prefilling] = {}
        self._ready = False
        self._waiting: Future[dict[str, Any]] | None = None
        self._closed = False
        self.figures: dict[str, float] = {}
        self.restarts = 0
        self._feeder = ThreadPoolExecutor(1, thread_name_prefix="commitments")
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
        self._feeder.shutdown()

    # --- the loop ------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed:
            try:
                self._inbox.get(timeout=self._patience())()
            except queue.Empty:
                self._hung()

    def _patience(self) -> float | None:
        if self._child is None or (self._ready and not self._work and self._waiting is None):
            return None
        return self._hang_s if self._ready and self._waiting is None else self._start_s

    def _hung(self) -> None:
        assert self._child is not None
        patience = self._patience() or 0.0
        self._child.kill()
        self._lost(self._child.gone(f"said nothing for {patience:.0f} s and was killed"))

    def _take(self, generation: int, message: Message | None) -> None:
        if generation != self._generation or self._child is None:
            return  # of a child that is no more
        if message is None:
            self._lost(self._child.gone())
            return
        header, blobs = message
        kind = header["kind"]
        if kind == "tokens":
            self._tokens(header["tokens"], blobs[0] if blobs else b"")
        elif kind == "prefilled":
            self._prefilled(header, blobs)
        elif kind == "stepped":
            self.figures = header["figures"]
        elif kind == "cancelled":
            for key in header["keys"]:
                self._end(key, "cancelled")
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
        works, self._work = self._work, {}
        for work in works.values():
            if isinstance(work, Prefilling):
                work.result.set_exception(error)
            else:
                work.done(error)

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
        self._work |= {work.key: work for work in works}
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
        try:
            if requests:
                self._child.send("generate", requests=requests)
            if jobs:
                self._child.send("prefill", jobs=jobs)
        except EngineError:
            logger.debug("the child is gone; its end of the pipe says so next")

    def _cancel(self, keys: Sequence[str]) -> None:
        known = [key for key in keys if key in self._work]
        if self._child is None or not self._ready:
            for key in known:
                self._end(key, "cancelled")
        elif known:
            try:
                self._child.send("cancel", keys=known)
            except EngineError:
                logger.debug("the child is gone; its end of the pipe says so next")

    def _reload(self, path: Path, result: Future[dict[str, Any]]) -> None:
        if self._work:
            result.set_exception(
                EngineError(
                    f"{len(self._work)} requests are under way",
                    where="engine vllm",
                    fix="load between streams",
                )
            )
            return
        if self._child is None or not self._ready:
            self._open(result)
            return
        try:
            self._child.send("reload", path=str(path))
        except EngineError as error:
            result.set_exception(error)
            return
        self._waiting = result

    def _tokens(self, news: Sequence[Sequence[Any]], data: bytes) -> None:
        rows = self._rows(data, sum(kept for _, _, _, kept, _ in news))
        taken = 0
        self._deaths = 0
        for key, ids, logprobs, kept, reason in news:
            work = self._work.get(key)
            block = rows[taken : taken + kept] if kept else None
            taken += kept
            if not isinstance(work, Generating):
                continue  # it was cancelled meanwhile
            work.tokens += ids
            work.logprobs += logprobs
            if block is not None:
                self._hand_over(work, block, final=bool(reason))
            if work.request.on_token is not None:
                for index, token in enumerate(ids):
                    work.request.on_token(token, reason if index == len(ids) - 1 else "")
            if reason:
                self._end(key, reason)

    def _rows(self, data: bytes, count: int) -> Any:
        if not count:
            return None
        import torch

        dtype = getattr(torch, self._dtype)
        width = len(data) // count // _DTYPES[self._dtype]
        # A copy: bytes can't be written to, and torch warns of tensors over them.
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(count, width)

    def _hand_over(self, work: Generating, block: Any, *, final: bool) -> None:
        if work.keeps_rows:
            work.rows.append(block)
        if work.request.commitment is None:
            return
        work.pending.append(block)
        if final or sum(len(rows) for rows in work.pending) >= INTERVAL:
            import torch

            rows, work.pending = torch.cat(work.pending), []
            work.feeding.append(self._feeder.submit(work.request.commitment.add, rows))

    def _end(self, key: str, reason: str) -> None:
        work = self._work.pop(key)
        assert isinstance(work, Generating)
        if work.pending and work.request.commitment is not None:
            import torch

            rows, work.pending = torch.cat(work.pending), []
            work.feeding.append(self._feeder.submit(work.request.commitment.add, rows))

        def finish() -> None:
            try:
                for fed in work.feeding:
                    fed.result()
                work.done(work.generation(reason))
            except Exception as error:  # noqa: BLE001 - whoever awaits the generation raises it
                work.done(error)

        # Behind the rows in the same thread: the commitment has them all when this runs.
        self._feeder.submit(finish)

    def _prefilled(self, header: Mapping[str, Any], blobs: Sequence[bytes]) -> None:
        work = self._work.pop(header["key"])
        self._deaths = 0
        assert isinstance(work, Prefilling)
        count = header["count"]
        draws = None
        if header["drawn"]:
            draws = PrefillDraws(*(np.frombuffer(blob, dtype=np.float64) for blob in blobs[2:5]))
        top = tuple(
            tuple((int(token), float(value)) for token, value in each) for each in header["top"]
        )
        hidden = np.frombuffer(blobs[1], dtype=np.float32)
        work.result.set_result(
            Prefill(
                logprobs=np.frombuffer(blobs[0], dtype=np.float32),
                hidden_states=hidden.reshape(count, math.ceil(hidden.size / max(count, 1))),
                top=top if work.request.top else (),
                draws=draws,
            )
        )
