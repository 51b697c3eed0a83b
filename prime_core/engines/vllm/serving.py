"""vLLM as the child runs it: started, stepped, given requests and new weights.

Imports vLLM; used by `child` alone. Invariant: a token is told to the engine once, after vLLM gave
it out, with the record of the race that chose it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vllm import EngineArgs, SamplingParams
from vllm.sampling_params import RequestOutputKind
from vllm.v1.engine.llm_engine import LLMEngine
from vllm.v1.metrics.loggers import StatLoggerBase

from prime_core.engines.vllm.slots import prefill_args, race_args

if TYPE_CHECKING:
    from vllm.config import VllmConfig
    from vllm.v1.metrics.stats import IterationStats, SchedulerStats

    from prime_core.engines.vllm.link import Link

_PROCESSOR = "prime_core.engines.vllm.capture:RaceProcessor"
_EXTENSION = "prime_core.engines.vllm.capture.Extension"


class Stats(StatLoggerBase):  # type: ignore[misc]  # vLLM is unknown to mypy here
    """The newest figures of vLLM's scheduler; sums of preemptions and of tokens from its cache."""

    def __init__(self, vllm_config: VllmConfig, engine_index: int = 0) -> None:
        self.figures: dict[str, float] = {"preemptions": 0.0, "cached_tokens": 0.0}
        latest.append(self)

    def record(
        self,
        scheduler_stats: SchedulerStats | None,
        iteration_stats: IterationStats | None,
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Take what vLLM says after a step."""
        if scheduler_stats is not None:
            self.figures |= {
                "running": float(scheduler_stats.num_running_reqs),
                "waiting": float(scheduler_stats.num_waiting_reqs),
                "kv_cache_usage": float(scheduler_stats.kv_cache_usage),
            }
            self.figures["cached_tokens"] += float(scheduler_stats.prefix_cache_stats.hits)
        if iteration_stats is not None:
            self.figures["preemptions"] += float(iteration_stats.num_preempted_reqs)

    def log_engine_initialized(self) -> None:
        """Nothing to say: the engine writes its own metrics."""


latest: list[Stats] = []


@dataclass(slots=True)
class _Open:
    """A request that vLLM works on."""

    internal: str
    wants_rows: bool
    sent: int = 0
    is_prefill: bool = False


class Server:
    """One vLLM engine and what it is asked.

    Args:
        link: to the engine.
        start: the first message: model directory and vLLM's arguments.
    """

    def __init__(self, link: Link, start: dict[str, Any]) -> None:
        self._link = link
        self._open: dict[str, _Open] = {}
        # Their ratio is how many sequences a forward pass served.
        self._sums = {"steps": 0.0, "tokens": 0.0}
        arguments = EngineArgs(
            model=start["model"],
            logits_processors=[_PROCESSOR],
            worker_extension_cls=_EXTENSION,
            disable_log_stats=False,
            **start["arguments"],
        )
        self._engine = LLMEngine.from_engine_args(arguments, stat_loggers=[Stats])
        self._device = self._last("prime_install")
        self._stops: list[int] = start["stops"]
        link.send(
            "started",
            device=self._device,
            weights=self._weights(),
            max_model_len=self._engine.model_config.max_model_len,
        )

    @property
    def busy(self) -> bool:
        """Whether there is something to step for."""
        return bool(self._open)

    def answer(self, message: dict[str, Any]) -> None:
        """Do what one message asks."""
        kind = message["kind"]
        if kind == "generate":
            for request in message["requests"]:
                self._generate(request)
        elif kind == "prefill":
            for job in message["jobs"]:
                self._prefill(job)
        elif kind == "cancel":
            self._cancel(message["keys"])
        elif kind == "reload":
            self._reload(Path(message["path"]))
        else:
            raise ValueError(f"unknown message {kind!r}")

    def step(self) -> None:
        """One step of vLLM; tell the engine what came out."""
        outputs = [output for output in self._engine.step() if output.request_id in self._open]
        prefills = [output for output in outputs if self._open[output.request_id].is_prefill]
        self._tell([output for output in outputs if not self._open[output.request_id].is_prefill])
        for output in prefills:
            if output.finished:
                del self._open[output.request_id]
                facts, blobs = self._last("prime_prefill", output.request_id)
                if "broken" in facts:
                    self._link.send("failed", key=output.request_id, what=facts["broken"])
                else:
                    self._link.send("prefilled", blobs, key=output.request_id, **facts)
        self._sums["steps"] += 1
        figures = latest[-1].figures if latest else {}
        self._link.send("stepped", figures={**figures, **self._sums})

    def _tell(self, outputs: list[Any]) -> None:
        news = []
        for output in outputs:
            found = self._open[output.request_id]
            count = len(output.outputs[0].token_ids)
            news.append((output.request_id, found.sent, count))
            found.sent += count
            self._sums["tokens"] += count
        if not news:
            return
        facts, rows = self._last("prime_take", news)
        tokens = []
        for output, (key, _, _), (ids, logprobs, kept) in zip(outputs, news, facts, strict=True):
            if list(output.outputs[0].token_ids) != ids:
                raise RuntimeError(
                    f"vLLM gave out {list(output.outputs[0].token_ids)}, the races were won by "
                    f"{ids}: another sampler had a say"
                )
            reason = (output.outputs[0].finish_reason or "") if output.finished else ""
            tokens.append([key, ids, logprobs, kept, reason])
        over = [output.request_id for output in outputs if output.finished]
        self._forget(over)
        self._link.send("tokens", [rows] if rows else [], tokens=tokens)

    def _generate(self, request: dict[str, Any]) -> None:
        key = request["key"]
        params = SamplingParams(
            temperature=0.0,
            max_tokens=request["max_tokens"],
            stop_token_ids=self._stops,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.DELTA,
            extra_args=race_args(
                key,
                request["seed"],
                request["position"],
                request["temperature"],
                request["wants_rows"],
            ),
        )
        internal = self._engine.add_request(key, {"prompt_token_ids": request["tokens"]}, params)
        self._open[key] = _Open(internal, request["wants_rows"])

    def _prefill(self, job: dict[str, Any]) -> None:
        *prompt, job["last"] = job.pop("tokens")
        params = SamplingParams(
            temperature=0.0,
            max_tokens=1,
            ignore_eos=True,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
            # Cached blocks have no hidden states.
            skip_reading_prefix_cache=True,
            extra_args=prefill_args(job),
        )
        internal = self._engine.add_request(job["key"], {"prompt_token_ids": prompt}, params)
        self._open[job["key"]] = _Open(internal, True, is_prefill=True)

    def _cancel(self, keys: list[str]) -> None:
        known = [key for key in keys if key in self._open]
        if known:
            self._engine.abort_request([self._open[key].internal for key in known], internal=True)
            self._forget(known)
        # Also for those that have just ended: their end is on its way already.
        self._link.send("cancelled", keys=known)

    def _forget(self, keys: list[str]) -> None:
        for key in keys:
            del self._open[key]
        if keys:
            self._last("prime_forget", keys)

    def _reload(self, path: Path) -> None:
        self._last("prime_reload", str(path))
        # Keys and values of the old weights would go on answering for the new ones.
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("vLLM keeps its prefix cache: requests are still running")
        self._link.send("reloaded", weights=self._weights())

    def _last(self, method: str, *args: Any) -> Any:
        """Call a method of every worker; the answer of the last, which has the sampled tokens."""
        return self._engine.collective_rpc(method, args=args)[-1]

    def _weights(self) -> str:
        return str("|".join(self._engine.collective_rpc("prime_weights")))
