"""The trainer's other hand: publishes a snapshot in a thread while the next step trains.

`train` hands over weights that nothing changes any more and goes on at once. Versions are published
one after another, each to its end; what goes wrong there stops the trainer at its next look.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from torch import Tensor

from prime_core.api.errors import RunError
from prime_core.store.trace import Trace
from prime_core.trainer.publish import Publisher

logger = logging.getLogger(__name__)


class Broadcast:
    """Publishes one version at a time.

    Args:
        publisher: of the run.
        trace: gets a span `publish` a version, in a lane of its own.
        published: called in the thread with each version that is sealed.
    """

    def __init__(
        self, publisher: Publisher, trace: Trace, published: Callable[[int], None]
    ) -> None:
        self._publisher, self._trace, self._published = publisher, trace, published
        # One thread for all versions: starting one makes the trainer wait until it runs.
        self._thread = ThreadPoolExecutor(1, "publish")
        self._running: Future[None] | None = None
        self._failure: BaseException | None = None

    def start(self, version: int, weights: dict[str, Tensor]) -> bool:
        """Begin to publish; whether the weights are the sealed ones, where there are such.

        Waits for the version before, which its parent's seal needs, and compares at once where the
        version is sealed already: only a trainer that trains a batch again does.

        Args:
            version: the policy version.
            weights: a copy that is nobody else's.
        """
        self.finish()
        if self._publisher.is_sealed(version):
            return self._publisher.publish(version, weights)
        self._running = self._thread.submit(self._publish, version, weights)
        return True

    def check(self) -> None:
        """Raise what went wrong in the thread, if anything did."""
        if self._failure is not None:
            failure, self._failure = self._failure, None
            raise failure

    def finish(self) -> None:
        """Wait for the version that is being published; raises what went wrong."""
        if self._running is not None:
            self._running.result()
            self._running = None
        self.check()

    def settle(self) -> None:
        """Wait for the thread, and log what nobody asked for; the trainer's last act."""
        self._thread.shutdown()
        if self._failure is not None:
            logger.error("a policy version can't be published: %s", self._failure)

    def _publish(self, version: int, weights: dict[str, Tensor]) -> None:
        try:
            with self._trace.span("publish", lane="publish", step=version - 1, version=version):
                same = self._publisher.publish(version, weights)
            if not same:
                raise RunError(
                    f"somebody else sealed policy version {version} meanwhile",
                    fix="run one trainer in a run directory",
                )
            self._published(version)
        except BaseException as error:  # noqa: BLE001  raised in the trainer's own thread by check
            self._failure = error
