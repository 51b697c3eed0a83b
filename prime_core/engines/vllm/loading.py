"""Which policy vLLM is started with, and the one on its way there.

Used by `driver`, in its thread. Invariant: a load that ends with an error leaves the policy of
before, and what vLLM has loaded is what somebody accepted.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from prime_core.api import EngineError
from prime_core.engines.vllm.process import Child, Message

# Starts a child that delivers its messages; returns it and what its first message is.
Start: TypeAlias = Callable[[Callable[[Message | None], None]], tuple[Child, dict[str, Any]]]
# Raises EngineError for what vLLM says of its weights.
Check: TypeAlias = Callable[[dict[str, Any]], None]


@dataclass(slots=True)
class Loading:
    """A policy that is being loaded.

    Attributes:
        path: directory of the weights for the vLLM that runs; None to start another.
        before: what vLLM was started with until now.
        result: what the child says once the weights are loaded.
    """

    start: Start
    path: Path | None
    check: Check
    before: Start | None = None
    result: Future[dict[str, Any]] = field(default_factory=Future)


class Policies:
    """The policy of a driver.

    Attributes:
        start: starts vLLM with it; None before the first.
        loading: a load that hasn't ended.
    """

    def __init__(self) -> None:
        self.start: Start | None = None
        self.loading: Loading | None = None
        self._weights = ""

    def begin(self, loading: Loading, wanted: int) -> bool:
        """Take a policy in, or refuse it.

        Args:
            wanted: requests that somebody still waits for.
        """
        refused = None
        if self.loading is not None:
            refused = ("another load is under way", "load one policy at a time")
        elif wanted:
            refused = (f"{wanted} requests are under way", "load between streams")
        if refused is not None:
            what, fix = refused
            loading.result.set_exception(EngineError(what, where="engine vllm", fix=fix))
            return False
        loading.before, self.start, self.loading = self.start, loading.start, loading
        return True

    def confirm(self, said: dict[str, Any]) -> bool:
        """vLLM has weights: those of a load, or, started anew, those that it had.

        Returns:
            Whether a load ended.

        Raises:
            EngineError: they aren't what they should be.
        """
        loading = self.loading
        if loading is not None:
            loading.check(said)
        elif said["weights"] != self._weights:
            raise EngineError(
                "vLLM was started anew, and has other weights than before",
                where="engine vllm",
                fix="leave the files of a policy as they are while it is loaded",
            )
        self._weights, self.loading = said["weights"], None
        if loading is not None:
            loading.result.set_result(said)
        return loading is not None

    def fail(self, error: EngineError) -> None:
        """A load fails, if there is one; the next request starts vLLM with what was before."""
        loading, self.loading = self.loading, None
        if loading is not None:
            self.start = loading.before
            loading.result.set_exception(error)
