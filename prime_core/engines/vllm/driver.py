"""The thread that speaks with the child: starts it, feeds it, and starts it anew when it dies.

Made by `engine`. Commands come from any thread, messages from the child, and one loop takes both in
order. Invariant: what was generated before vLLM died is kept, and the rest is asked for again under
the same policy; a request ends with an error only where it can't be answered, or vLLM dies again
and again without getting far.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from prime_core.api import EngineError
from prime_core.engines.vllm.arriving import Arrivals
from prime_core.engines.vllm.inbox import Inbox
from prime_core.engines.vllm.life import Life
from prime_core.engines.vllm.loading import Check, Loading, Policies, Start
from prime_core.engines.vllm.process import Message
from prime_core.engines.vllm.tally import Tally
from prime_core.engines.vllm.work import Generating, Prefilling

logger = logging.getLogger("prime_core.engines.vllm")

# Deaths in a row after lives that didn't get far, after which vLLM is given up.
TRIES = 3


class Driver:
    """One vLLM process at a time and all that is asked of it.

    Args:
        dtype: of the hidden states.
        start_s: longest silence while vLLM starts or loads weights.
        hang_s: longest silence while there is work.
    """

    def __init__(self, *, dtype: str, start_s: float, hang_s: float) -> None:
        self._start_s, self._hang_s = start_s, hang_s
        self._inbox = Inbox()
        self._life: Life | None = None
        self._deaths = 0
        self._replaces_dead = False
        self._under_way = Arrivals(dtype)
        self._policies = Policies()
        self._tally = Tally()
        self.closed = False
        self.restarts = 0
        self._thread = threading.Thread(target=self._run, name="vllm driver", daemon=True)
        self._thread.start()

    def begin(self, works: Sequence[Generating | Prefilling]) -> None:
        """Ask for several at once: they enter vLLM's queue together, in this order.

        Raises:
            EngineError: the driver was closed.
        """
        if not self._inbox.put(lambda: self._begin(works)):
            raise _closed()

    def cancel(self, keys: Sequence[str]) -> None:
        """End requests; those that haven't ended come back with finish reason cancelled."""
        self._inbox.put(lambda: self._cancel(keys))

    def load(self, start: Start, path: Path | None, check: Check) -> Future[dict[str, Any]]:
        """Load a policy: from here on vLLM is started with it, unless the load fails.

        Args:
            start: starts a child with the policy; it gets where to deliver messages.
            path: directory of the weights, for the vLLM that runs; None to start another.
            check: raises for what vLLM says of the weights that it has now.

        Returns:
            What the child says, once the weights are loaded, or an EngineError: requests or another
            load are under way, vLLM fails, or the check does. The policy stays what it was then.
        """
        loading = Loading(start, path, check)
        if not self._inbox.put(lambda: self._load(loading)):
            loading.result.set_exception(_closed())
        return loading.result

    @property
    def pid(self) -> int | None:
        """Of the child; None without one."""
        return self._life.pid if self._life is not None else None

    @property
    def figures(self) -> dict[str, float]:
        """vLLM's newest figures."""
        return self._tally.figures

    def close(self) -> None:
        """End the child and the thread; what isn't finished ends with an error."""
        self._inbox.put(self._close)
        self._thread.join()
        self._under_way.close()

    @property
    def _work(self) -> dict[str, Generating | Prefilling]:
        return self._under_way.work

    def _run(self) -> None:
        while not self.closed:
            try:
                self._next()()
            except queue.Empty:
                self._hung()
            except Exception as error:  # noqa: BLE001 - a dead thread would leave everyone waiting
                self._broken(error)
        for command in self._inbox.close():
            command()  # each says that the engine was closed

    def _next(self) -> Callable[[], None]:
        """The next command or message; Empty where the child is silent for too long.

        Commands don't count: who cancels four times a second doesn't keep a hung vLLM alive.
        """
        life, patience = self._life, self._patience()
        if life is None or patience is None:
            found = self._inbox.get(None)
            if life is not None:
                life.heard = time.monotonic()  # an idle one has nothing to say
            return found
        return self._inbox.get(max(0.0, life.heard + patience - time.monotonic()))

    def _patience(self) -> float | None:
        """How long the child may be silent; None where nothing is expected of it."""
        if self._life is None:
            return None
        if self._policies.loading is not None or not self._life.is_ready:
            return self._start_s
        return self._hang_s if self._work else None

    def _hung(self) -> None:
        assert self._life is not None
        self._life.kill()
        self._lost(self._life.gone(f"said nothing for {self._patience():.0f} s and was killed"))

    def _broken(self, error: Exception) -> None:
        """Something of ours failed (a caller's callback, perhaps): whoever waits hears of it."""
        logger.exception("the engine vllm failed; what was under way ends with an error")
        self._end_life()
        failed = EngineError(
            f"{type(error).__name__}: {error}",
            where="engine vllm",
            fix="the log has the traceback; the next request starts vLLM anew",
        )
        self._policies.fail(failed)
        self._give_up(failed)

    def _end_life(self) -> None:
        if self._life is not None:
            self._life.kill()
            self._replaces_dead = True
        self._life = None

    def _take(self, life: Life, message: Message | None) -> None:
        if life is not self._life:
            return  # of a child that is no more
        life.heard = time.monotonic()
        if message is None:
            self._lost(life.gone())
            return
        header, blobs = message
        kind = header["kind"]
        if kind == "tokens":
            life.tokens += sum(len(ids) for _, ids, *_ in header["tokens"])
            broken = self._under_way.tokens(header["tokens"], blobs[0] if blobs else b"")
            if broken:
                life.cancel(broken)
        elif kind == "prefilled":
            life.tokens += header["count"]
            self._under_way.prefilled(header, blobs)
        elif kind == "stepped":
            self._tally.take(header["figures"])
        elif kind == "cancelled":
            for key in header["keys"]:
                if key in self._work:
                    self._under_way.end(key, "cancelled")
        elif kind == "failed":
            self._under_way.fail(header["key"], header["what"])
        else:  # started, reloaded
            self._loaded(life, header)

    def _launch(self) -> None:
        """Start a child with the policy, which may be an EngineError."""
        self._life = None
        self._life = Life(
            self._policies.start,
            lambda life, message: self._inbox.put(lambda: self._take(life, message)),
        )
        self._tally.begin_life()
        self.restarts, self._replaces_dead = self.restarts + self._replaces_dead, False

    def _lost(self, error: EngineError) -> None:
        """The child is gone: start another and go on, or give up what is waiting."""
        far = self._life is not None and self._life.got_far
        self._life, self._replaces_dead = None, True
        self._deaths = 1 if far else self._deaths + 1
        self._end_cancelled()
        if self._policies.loading is not None:
            self._policies.fail(error)
            self._give_up(error)
        elif not self._work:
            logger.error("%s; the next request starts it anew", error.what)
        else:
            self._try_again(error)

    def _try_again(self, error: EngineError) -> None:
        while self._deaths <= TRIES:
            logger.error("%s; starting it anew for %d requests", error.what, len(self._work))
            try:
                self._launch()
                return
            except EngineError as again:
                self._deaths += 1
                error = again
        self._give_up(error)

    def _give_up(self, error: EngineError) -> None:
        self._deaths = 0
        self._under_way.give_up(error)

    def _close(self) -> None:
        self.closed = True
        if self._life is not None:
            self._life.close()
        self._life = None
        self._policies.fail(_closed())
        self._give_up(_closed())

    def _load(self, loading: Loading) -> None:
        # vLLM hears of cancelled ones before it hears of the weights.
        wanted = sum(not work.cancelled for work in self._work.values())
        if self.closed:
            loading.result.set_exception(_closed())
            return
        if not self._policies.begin(loading, wanted):
            return
        if loading.path is not None and self._life is not None and self._life.is_ready:
            self._life.reload(loading.path)
            return
        if self._life is not None:
            self._life.kill()
        self._end_cancelled()
        try:
            self._launch()
        except EngineError as error:
            self._policies.fail(error)

    def _loaded(self, life: Life, header: dict[str, Any]) -> None:
        life.is_ready = True
        try:
            if self._policies.confirm(header):
                self._tally.begin_peaks()
        except EngineError as error:
            self._end_life()  # nothing is answered by what nobody accepted
            self._policies.fail(error)
            self._give_up(error)
            return
        if header["kind"] == "started":
            life.post(list(self._work.values()))

    def _begin(self, works: Sequence[Generating | Prefilling]) -> None:
        self._work.update({work.key: work for work in works})
        if self.closed:
            self._give_up(_closed())
        elif self._life is None:
            try:
                self._launch()
            except EngineError as error:
                self._give_up(error)
        elif self._life.is_ready:
            self._life.post(works)

    def _cancel(self, keys: Sequence[str]) -> None:
        known = [key for key in keys if isinstance(self._work.get(key), Generating)]
        for key in known:
            self._work[key].cancelled = True
        if self._life is None or not self._life.is_ready:
            self._end_cancelled()
        elif known:
            self._life.cancel(known)

    def _end_cancelled(self) -> None:
        """vLLM can't end them: it's gone, or doesn't know them yet."""
        for key in [key for key, work in self._work.items() if work.cancelled]:
            self._under_way.end(key, "cancelled")


def _closed() -> EngineError:
    return EngineError("the engine was closed", where="engine vllm", fix="open another")
