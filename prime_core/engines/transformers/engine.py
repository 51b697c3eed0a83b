"""The engine object: loads policies, batches a stream of requests, and answers it.

Made by `plugin.make`; all torch work runs on one thread of its own, so that the event loop of the
worker goes on scoring. Batches are consecutive requests of the stream, whatever the timing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version as installed_version
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
from prime_core.engines.fitting import fit_of
from prime_core.engines.model_files import build_model
from prime_core.engines.stop_tokens import stop_tokens
from prime_core.engines.strict_load import LoadReport, load_weights
from prime_core.engines.transformers.plugin import TransformersParams


class TransformersEngine:
    """Implements `prime_core.api.InferenceEngine` with Hugging Face models on the CPU."""

    def __init__(self, params: TransformersParams) -> None:
        import torch

        self.params = params
        self.last_load: LoadReport | None = None
        self._model: Any = None
        self._model_dir: Path | None = None
        self._forward: Any = None
        self._stop_ids: frozenset[int] = frozenset()
        self._cancelled: set[str] = set()
        self._streams = 0
        self._closing = False
        torch.set_num_threads(params.threads)
        # torch keeps its thread count per thread: the one that computes must be told, too.
        self._thread = ThreadPoolExecutor(
            1,
            thread_name_prefix="engine",
            initializer=torch.set_num_threads,
            initargs=(params.threads,),
        )
        self._commitments = ThreadPoolExecutor(
            1, thread_name_prefix="commitments", initializer=torch.set_num_threads, initargs=(1,)
        )

    @property
    def capabilities(self) -> EngineCapabilities:
        """Hidden states as configured; sampling is seeded; commitments wherever asked for."""
        params = self.params
        fingerprint = (
            f"transformers-{installed_version('transformers')};torch-{installed_version('torch')};"
            f"{params.dtype};{params.attention};threads={params.threads};batch={params.batch_size}"
        )
        return EngineCapabilities(
            name="transformers",
            fingerprint=fingerprint,
            hidden_states=params.hidden_states,
            seeded_sampling=True,
            commitments=True,
        )

    @property
    def parameter_count(self) -> int:
        """Parameters of the loaded model, a tied embedding counted once."""
        return sum(parameter.numel() for parameter in self._loaded().parameters())

    def load(self, policy: PolicyFiles) -> bytes:
        """Load the policy's weights in place; the model is built on the first call.

        Returns:
            The policy's digest, once every tensor the model has was read from the files handed
            over (whose bytes were checked against it) and nothing else was in them.

        Raises:
            EngineError: the files don't fit the model; the old weights stay loaded.
        """
        return self._thread.submit(self._load, policy).result()

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        """Generate a stream; see `InferenceEngine.generate`.

        Raises:
            EngineError: no policy is loaded, or a request is longer than the model's context.
        """
        self._loaded()
        self._streams += 1
        try:
            batch: list[GenerationRequest] = []
            async for request in requests:
                batch.append(request)
                if len(batch) == self.params.batch_size:
                    for generation in await self._run(batch):
                        yield generation
                    batch = []
            if batch:
                for generation in await self._run(batch):
                    yield generation
        finally:
            self._streams -= 1
            if not self._streams:
                self._cancelled.clear()

    def cancel(self, group_id: str) -> None:
        """End the group's unfinished requests; without a stream there are none."""
        if self._streams:
            self._cancelled.add(group_id)

    def generate_now(self, requests: Sequence[GenerationRequest]) -> list[Generation]:
        """Generate one batch of any size in the calling thread, in order; for tests and tools."""
        return self._generate(list(requests))

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """Recompute log-probabilities and hidden states; see `InferenceEngine.prefill`."""
        return self._thread.submit(self._prefill, list(requests)).result()

    def close(self) -> None:
        """Stop the thread, within a token where it generates, and drop the model."""
        self._closing = True
        self._thread.shutdown(wait=True, cancel_futures=True)
        self._commitments.shutdown(wait=True)
        if self._forward is not None:
            self._forward.close()
        self._model = self._forward = None

    async def _run(self, batch: list[GenerationRequest]) -> list[Generation]:
        # A stream that is given up mustn't keep the thread busy to the end of its batch.
        given_up = threading.Event()
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, self._generate, batch, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise

    def _loaded(self) -> Any:
        if self._model is None:
            raise EngineError(
                "no policy is loaded", where="engine transformers", fix="call load() first"
            )
        return self._model

    def _load(self, policy: PolicyFiles) -> bytes:
        from prime_core.engines.transformers.forward import Forward

        model = self._model
        if model is None or policy.model_dir != self._model_dir:
            model = build_model(
                policy.model_dir, dtype=self.params.dtype, attention=self.params.attention
            )
        report = load_weights(model, policy.weights)
        if model is not self._model:
            stop_ids = stop_tokens(policy.model_dir)
            if self._forward is not None:
                self._forward.close()
            self._model, self._model_dir, self._stop_ids = model, policy.model_dir, stop_ids
            self._forward = Forward(model)
        self.last_load = report
        return policy.digest

    def _generate(
        self, batch: list[GenerationRequest], given_up: threading.Event | None = None
    ) -> list[Generation]:
        import torch

        from prime_core.engines.transformers.committing import Committer
        from prime_core.engines.transformers.decoding import generate_batch

        fit = fit_of(self._loaded().config.to_dict())
        for request in batch:
            fit.check_generation(request)

        def cancelled(group_id: str) -> bool:
            stopped = self._closing or (given_up is not None and given_up.is_set())
            return stopped or group_id in self._cancelled

        with torch.inference_mode():
            return generate_batch(
                self._forward,
                batch,
                stop_ids=self._stop_ids,
                keep_hidden=self.params.hidden_states,
                cancelled=cancelled,
                committer=Committer(self._commitments),
            )

    def _prefill(self, requests: list[PrefillRequest]) -> list[Prefill]:
        import torch

        from prime_core.engines.transformers.prefilling import prefill

        fit = fit_of(self._loaded().config.to_dict())
        for request in requests:
            fit.check_prefill(request)
        with torch.inference_mode():
            return prefill(self._forward, requests, self.params.batch_size)
