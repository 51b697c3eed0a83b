"""The engine object: policies into vLLM, a stream of requests through it, answers as they end.

Made by `plugin.make`. vLLM runs in a child process (`driver`, `process`), so that the worker
survives whatever happens to it; requests join the running batch as they come.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import wait
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from prime_core.api import (
    EngineCapabilities,
    EngineError,
    Generation,
    GenerationRequest,
    PolicyFiles,
    Prefill,
    PrefillRequest,
)
from prime_core.engines.expected import Expected, expected_tensors
from prime_core.engines.fitting import Fit
from prime_core.engines.vllm.checkpoints import (
    Shapes,
    check_same,
    own_entries,
    read_entries,
    sample_digest,
    shapes,
)
from prime_core.engines.vllm.driver import Driver
from prime_core.engines.vllm.model_dirs import assemble, fit_in, prune
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.engines.vllm.process import Child, Message
from prime_core.engines.vllm.starting import start_child
from prime_core.engines.vllm.stream import Stream
from prime_core.engines.vllm.versions import Installed, installed
from prime_core.engines.vllm.window import Window
from prime_core.engines.vllm.work import Prefilling

# Names of dtypes in safetensors files.
_STORED = {"float32": "F32", "bfloat16": "BF16"}


class VllmEngine:
    """Implements `prime_core.api.InferenceEngine` with vLLM.

    Args:
        params: of the plugin.
        log_dir: where vLLM's own output goes; None for a temporary directory.
    """

    def __init__(self, params: VllmParams, log_dir: Path | None = None) -> None:
        self.params = params
        self._home = tempfile.TemporaryDirectory(prefix="prime-vllm-")
        self._scratch = Path(self._home.name)
        self._log = (log_dir or self._scratch) / "vllm.log"
        self._policy: PolicyFiles | None = None
        self._shapes: Shapes = {}
        self._sample = ""
        self._loaded_weights = ""
        self._expected: Expected | None = None
        self._fit, self._limit = Fit(None, None), 0
        self._keys = itertools.count()
        self._streams: list[Stream] = []
        self._window: Window | None = None
        self._started_from: Path | None = None
        self._driver = Driver(
            dtype=params.dtype, start_s=params.start_timeout_s, hang_s=params.hang_timeout_s
        )

    @cached_property
    def _installed(self) -> Installed:
        return installed(self.params.python)

    @property
    def capabilities(self) -> EngineCapabilities:
        """Hidden states as configured; sampling is seeded; commitments wherever asked for."""
        params, found = self.params, self._installed
        fingerprint = (
            f"{found.distribution}-{found.version};torch-{found.torch};{params.dtype};"
            f"threads={params.threads};batch={params.batch_size};tp={params.tensor_parallel};"
            f"pp={params.pipeline_parallel};compiled={params.compiled}"
        )
        return EngineCapabilities(
            name="vllm",
            fingerprint=fingerprint,
            hidden_states=params.hidden_states,
            seeded_sampling=True,
            commitments=True,
            continuous_batch=params.batch_size,
        )

    @property
    def figures(self) -> dict[str, float]:
        """vLLM's newest figures, restarts, and the window of requests that it is handed."""
        window = 0 if self._window is None else self._window.limit
        own = {"restarts": float(self._driver.restarts), "window": float(window)}
        return {**self._driver.figures, **own}

    @property
    def parameter_count(self) -> int:
        """Parameters in the policy's files."""
        return sum(math.prod(shape) for _, shape in self._shapes.values())

    @property
    def pid(self) -> int | None:
        """Of vLLM's process; None without one."""
        return self._driver.pid

    def load(self, policy: PolicyFiles) -> bytes:
        """Load the policy's weights; vLLM is started by the first call.

        Returns:
            The policy's digest, once vLLM has loaded the files handed over.

        Raises:
            EngineError: the files don't fit the model (vLLM isn't given them), requests or another
                load are under way, vLLM fails, or its weights stay as they were though the files
                changed. The policy of before is the one that answers then.
        """
        self._check_open()
        entries = read_entries(policy.weights)
        fresh = self._policy is None or policy.model_dir != self._policy.model_dir
        expected, fit, limit = self._expected, self._fit, self._limit
        if fresh:
            expected = expected_tensors(policy.model_dir)
            fit, limit = fit_in(policy.model_dir, self.params.max_model_len)
        if expected is not None:
            entries = own_entries(expected, entries, self.params.dtype)
        found, sample = shapes(entries), sample_digest(entries)
        if not fresh:
            check_same(self._shapes, found, where=str(policy.weights[0]))

        def check(said: Mapping[str, Any]) -> None:
            unchanged = said["weights"] == self._loaded_weights
            # In another dtype than the files', a small update may round to nothing.
            exact = {kind for kind, _ in found.values()} == {_STORED[self.params.dtype]}
            if not fresh and unchanged and exact and sample != self._sample:
                raise EngineError(
                    f"vLLM's weights are those of before, and version {policy.version} has others",
                    where="engine vllm",
                    fix="report it with vLLM's version: its reload did nothing",
                )

        directory = assemble(policy, self._scratch)
        start = partial(self._start, policy, limit)
        said = self._driver.load(start, None if fresh else directory, check).result()
        self._policy, self._shapes, self._sample = policy, found, sample
        self._loaded_weights = said["weights"]
        self._expected, self._fit, self._limit = expected, fit, limit
        prune(self._scratch, keep={self._started_from, directory})
        return policy.digest

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        """Generate a stream; generations come as they end.

        Requests that are there at once enter vLLM together; further ones join its batch as others
        leave it, whichever stream they are of.

        Raises:
            EngineError: no policy is loaded, a request is longer than the model's context, its
                logits hold NaN, or vLLM dies again and again.
        """
        self._loaded()
        if self._window is None or not self._streams:  # one serves one event loop
            limit = None if self._window is None else self._window.limit
            self._window = Window(self.params.batch_size, self._preemptions, limit)
        stream = Stream(
            self._driver,
            self._window,
            self._keys,
            self._fit.check_generation,
            keeps_rows=self.params.hidden_states,
        )
        self._streams.append(stream)
        feeding = asyncio.create_task(stream.feed(requests))
        try:
            while (found := await stream.answers.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            stream.abandon()
            self._streams.remove(stream)

    def cancel(self, group_id: str) -> None:
        """End the group's unfinished requests; without a stream there are none."""
        for stream in self._streams:
            stream.cancel(group_id)

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """Recompute log-probabilities and hidden states; see `InferenceEngine.prefill`.

        Raises:
            EngineError: no policy is loaded, a sequence doesn't fit, logits hold NaN, or vLLM dies.
        """
        self._loaded()
        for request in requests:
            self._fit.check_prefill(request)
        works = [Prefilling(f"p{next(self._keys)}", request) for request in requests]
        self._driver.begin(works)
        wait([work.result for work in works])  # nothing is left under way where one fails
        return [work.result.result() for work in works]

    def close(self) -> None:
        """End vLLM and give its memory back."""
        self._driver.close()
        self._home.cleanup()

    def _preemptions(self) -> float:
        return self._driver.figures.get("preemptions", 0.0)

    def _loaded(self) -> PolicyFiles:
        self._check_open()
        if self._policy is None:
            raise EngineError("no policy is loaded", where="engine vllm", fix="call load() first")
        return self._policy

    def _check_open(self) -> None:
        if self._driver.closed:
            raise EngineError("the engine was closed", where="engine vllm", fix="open another")

    def _start(
        self, policy: PolicyFiles, limit: int, deliver: Callable[[Message | None], None]
    ) -> tuple[Child, dict[str, Any]]:
        """Start a child for a policy; called in the driver's thread."""
        self._started_from = assemble(policy, self._scratch)
        return start_child(
            self.params, self._installed, self._started_from, limit, self._log, deliver
        )
