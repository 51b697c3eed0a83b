"""What happens inside vLLM's workers: the race of each token, the rows that chose it, prefills.

vLLM imports it by name in every worker: `RaceProcessor` as a logits processor, `Extension` as the
worker extension whose methods the child calls by collective RPC. Both meet in `_CAPTURE`, one a
worker process. Invariant: a token's record holds the hidden state, the log-probability and the
winner of the very logits that vLLM samples from, whatever the batch around it; where a position is
computed again (chunks of a prefill, preemption), the last computation counts, as it does in vLLM.

Legend: B requests in a step, V vocabulary, D hidden width, N tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from vllm.model_executor.layers.vocab_parallel_embedding import VocabParallelEmbedding
from vllm.v1.sample.logits_processor import BatchUpdate, LogitsProcessor, MoveDirectionality

from prime_core.engines.vllm.fingerprint import fingerprint
from prime_core.engines.vllm.packing import packed, watch_packing
from prime_core.engines.vllm.prefills import PrefillCapture
from prime_core.engines.vllm.racing import race
from prime_core.engines.vllm.slots import Slot, slot_of

if TYPE_CHECKING:
    from vllm import SamplingParams
    from vllm.config import VllmConfig


@dataclass(frozen=True, slots=True)
class Record:
    """One sampled token; `row` is [D] on the CPU, or None where nobody wants it."""

    token: int
    logprob: float
    row: torch.Tensor | None


@dataclass(slots=True)
class _Capture:
    """The state of one worker process.

    Attributes:
        rows_BD: hidden states of the last call of `compute_logits` that vLLM made.
        records: request key -> index among the request's own new tokens -> record.
    """

    rows_BD: torch.Tensor | None = None
    records: dict[str, dict[int, Record]] = field(default_factory=dict)


_CAPTURE = _Capture()
watch_packing()


class RaceProcessor(LogitsProcessor):  # type: ignore[misc]  # vLLM is unknown to mypy here
    """Makes vLLM take the winner of each request's seeded Gumbel race.

    vLLM samples our requests greedily; the logits that leave here exclude every token but the
    winner, so that no other sampler decides.
    """

    def __init__(self, vllm_config: VllmConfig, device: torch.device, is_pin_memory: bool) -> None:
        self._slots: dict[int, Slot] = {}

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Refuse a request that another sampler would have a say in."""
        if slot_of(sampling_params, []) is not None and sampling_params.temperature != 0:
            raise ValueError("a race is run with vLLM's temperature 0")

    def is_argmax_invariant(self) -> bool:
        """It decides which token is largest."""
        return False

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Follow vLLM's batch: requests that left, came and moved, in this order."""
        if batch_update is None:
            return
        for index in batch_update.removed:
            self._slots.pop(index, None)
        for index, params, _, output_ids in batch_update.added:
            self._put(index, slot_of(params, output_ids))
        for first, second, direction in batch_update.moved:
            moved, other = self._slots.pop(first, None), self._slots.pop(second, None)
            self._put(second, moved)
            if direction is MoveDirectionality.SWAP:
                self._put(first, other)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Run the races of this step's requests and record them."""
        indices = [index for index in sorted(self._slots) if index < logits.shape[0]]
        if not indices:
            return logits
        slots = [self._slots[index] for index in indices]
        everything = len(indices) == logits.shape[0]
        logits_BV = logits if everything else logits[indices]
        tokens_B, logprobs_B = race(logits_BV, slots)
        self._record(slots, indices, logits.shape[0], tokens_B, logprobs_B)
        won_B1 = tokens_B[:, None]
        if everything:
            return logits.fill_(-torch.inf).scatter_(1, won_B1, 0.0)
        logits[indices] = torch.full_like(logits_BV, -torch.inf).scatter_(1, won_B1, 0.0)
        return logits

    def _put(self, index: int, slot: Slot | None) -> None:
        if slot is None:
            self._slots.pop(index, None)
        else:
            self._slots[index] = slot

    def _record(
        self,
        slots: Sequence[Slot],
        indices: Sequence[int],
        batch: int,
        tokens_B: torch.Tensor,
        logprobs_B: torch.Tensor,
    ) -> None:
        rows: Sequence[torch.Tensor | None] = [None] * len(slots)
        if any(slot.wants_rows for slot in slots):
            found_BD = _CAPTURE.rows_BD
            if found_BD is None or found_BD.shape[0] != batch:
                raise RuntimeError(
                    f"{batch} logits come from "
                    f"{0 if found_BD is None else found_BD.shape[0]} hidden states: this vLLM "
                    "calls compute_logits in another way than the engine was written for"
                )
            # A copy: vLLM may write the next step into the same buffer.
            rows = list(found_BD[indices].to("cpu", copy=True).unbind())
        entries = zip(slots, rows, tokens_B.tolist(), logprobs_B.tolist(), strict=True)
        for slot, row, token, logprob in entries:
            kept = _CAPTURE.records.setdefault(slot.key, {})
            kept[len(slot.output_ids)] = Record(token, logprob, row if slot.wants_rows else None)


class Extension:
    """Methods that vLLM adds to its worker; called through `collective_rpc`."""

    model_runner: Any

    def prime_install(self) -> str:
        """Begin to watch `compute_logits`, and the hidden states of prefills; the device's type."""
        runner = self.model_runner
        model = runner.get_model()
        compute = model.compute_logits

        def watched(hidden_states: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            _CAPTURE.rows_BD = hidden_states
            return compute(hidden_states, *args, **kwargs)

        model.compute_logits = watched
        self._prefills = PrefillCapture(runner, compute)
        return str(runner.device.type)

    def prime_take(self, wanted: Sequence[tuple[str, int, int]]) -> tuple[Any, bytes]:
        """The records of tokens that vLLM gave out, and their rows; they are forgotten here.

        Args:
            wanted: (request key, index of the first new token, how many).

        Returns:
            For each wanted one (tokens, log-probabilities, rows), and all rows as bytes in order.
        """
        facts: list[tuple[list[int], list[float], int]] = []
        rows: list[torch.Tensor] = []
        if not _CAPTURE.records:  # an early stage of a pipeline samples nothing
            return facts, b""
        for key, first, count in wanted:
            kept = _CAPTURE.records[key]
            found = [kept.pop(first + step) for step in range(count)]
            facts.append(
                (
                    [record.token for record in found],
                    [record.logprob for record in found],
                    sum(record.row is not None for record in found),
                )
            )
            rows += [record.row for record in found if record.row is not None]
        return facts, tensor_bytes(torch.stack(rows)) if rows else b""

    def prime_forget(self, keys: Sequence[str]) -> None:
        """Drop what is left of requests that ended."""
        for key in keys:
            _CAPTURE.records.pop(key, None)
            self._prefills.forget(key)

    def prime_prefill(self, key: str) -> tuple[Any, list[bytes]]:
        """The result of a prefill request that has ended."""
        return self._prefills.take(key)

    def prime_reload(self, path: str) -> None:
        """Load weights from a directory of safetensors files into the running model."""
        self.model_runner.reload_weights(weights_path=path)
        for module in self.model_runner.get_model().modules():
            # On CPUs vLLM multiplies by a packed copy of an embedding that is also the output
            # layer, and its reload leaves that copy as it was: the logits would be the old ones.
            if isinstance(module, VocabParallelEmbedding) and not module.weight.is_meta:
                module.quant_method.process_weights_after_loading(module)

    def prime_weights(self) -> str:
        """A fingerprint of every parameter as it is loaded now; equal only if nothing changed."""
        model = self.model_runner.get_model()
        return fingerprint(model.named_parameters(), packed(model))


def tensor_bytes(tensor: torch.Tensor) -> bytes:
    """The bytes of a CPU tensor, of any dtype."""
    array: np.ndarray[Any, Any] = tensor.contiguous().view(torch.uint8).numpy()
    return array.tobytes()
