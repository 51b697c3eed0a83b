"""One life of vLLM: a child from its start to its death, and how far it got.

Used by the driver's thread alone; a message of an earlier life is told by its object.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prime_core.api import EngineError
from prime_core.engines.vllm.loading import Start
from prime_core.engines.vllm.process import ChildGone, Message
from prime_core.engines.vllm.work import Generating, Prefilling

# A life got far with so many tokens: less isn't worth the time that a restart takes.
SOUND_TOKENS = 1000


class Life:
    """A child that was started.

    Args:
        deliver: called in another thread with this life and each message, None at its end.

    Raises:
        EngineError: there is no policy, or the child can't be started.
    """

    def __init__(
        self, start: Start | None, deliver: Callable[[Life, Message | None], object]
    ) -> None:
        if start is None:
            raise EngineError("no policy is loaded", where="engine vllm", fix="call load() first")

        def heard(message: Message | None) -> None:
            deliver(self, message)

        try:
            self._child, first = start(heard)
        except EngineError:
            raise
        except Exception as error:
            # Whatever it is, somebody waits for the load or the request that wanted a start.
            raise EngineError(
                f"vLLM can't be started: {type(error).__name__}: {error}",
                where="engine vllm",
                fix="look at the model's directory, and whether logs can be written",
            ) from error
        self.is_ready = False
        self.tokens = 0
        self.heard = time.monotonic()
        self._child.send("start", **first)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._child.pid

    @property
    def got_far(self) -> bool:
        """Whether it was worth its start."""
        return self.tokens >= SOUND_TOKENS

    def post(self, works: Sequence[Generating | Prefilling]) -> None:
        """Ask for several at once."""
        requests = [work.message() for work in works if isinstance(work, Generating)]
        jobs = [work.message() for work in works if isinstance(work, Prefilling)]
        if requests:
            self._child.send("generate", requests=requests)
        if jobs:
            self._child.send("prefill", jobs=jobs)

    def cancel(self, keys: Sequence[str]) -> None:
        """Ask for no more of them."""
        self._child.send("cancel", keys=list(keys))

    def reload(self, path: Path) -> None:
        """Have it load other weights; the silence until then counts from here."""
        self.heard = time.monotonic()
        self._child.send("reload", path=str(path))

    def gone(self, what: str = "") -> ChildGone:
        """The error that says how it ended."""
        return self._child.gone(what)

    def kill(self) -> None:
        """End it at once."""
        self._child.kill()

    def close(self) -> None:
        """Ask it to end, and end it where it doesn't."""
        self._child.close()
