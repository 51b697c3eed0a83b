"""Hidden states and log-probabilities of prefills, taken from vLLM's forward passes in chunks.

Installed by the worker extension. A prefill is an ordinary request whose prompt is the sequence
without its last token; after each forward pass, the rows of the prompt's chunk are kept.

Legend: N positions of a chunk, V vocabulary, D hidden width.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from prime_core.engines.transformers.race import draws
from prime_core.engines.vllm.slots import PrefillJob, job_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Floats of one chunk's logits: 256 MiB, as in the transformers engine.
_LOGIT_BUDGET = 1 << 26


class PrefillCapture:
    """Watches one model runner.

    Args:
        runner: vLLM's model runner.
        compute: its model's own `compute_logits`.
    """

    def __init__(self, runner: Any, compute: Callable[..., torch.Tensor]) -> None:
        self._runner = runner
        self._compute = compute
        # Key -> absolute position -> row [D]; what is computed again replaces what was there.
        self._rows: dict[str, dict[int, torch.Tensor]] = {}
        self._asked: dict[str, tuple[PrefillJob, list[int]]] = {}
        original = runner._get_prompt_logprobs_dict

        def watched(hidden_states: torch.Tensor, scheduled: Mapping[str, int]) -> Any:
            self._keep(hidden_states, scheduled)
            return original(hidden_states, scheduled)

        runner._get_prompt_logprobs_dict = watched

    def take(self, key: str) -> tuple[dict[str, Any], list[bytes]]:
        """A finished prefill: what `Prefill` holds, arrays as bytes.

        Returns:
            `{count, top, drawn}` and the blobs: log-probabilities (float32), hidden states
            (float32), and where drawn means, variances and race gaps (float64). `{broken}` alone
            where logits hold NaN.
        """
        if key not in self._asked:  # an early stage of a pipeline sees no final hidden states
            return {}, []
        job, tokens = self._asked.pop(key)
        rows = self._rows.pop(key)
        states_ND = torch.stack([rows[at] for at in range(job.start - 1, len(tokens) - 1)])
        parts = [
            self._judge(job, tokens, first, states_ND[first : first + self._chunk(states_ND)])
            for first in range(0, states_ND.shape[0], self._chunk(states_ND))
        ]
        if any(np.isnan(part[0]).any() for part in parts):
            return {"broken": "logits hold NaN"}, []
        top = [alternatives for part in parts for alternatives in part[1]]
        blobs = [
            np.concatenate([part[0] for part in parts]).tobytes(),
            states_ND.float().numpy().tobytes(),
        ]
        if job.seed is not None:
            blobs += [
                np.concatenate(each).tobytes()
                for each in zip(*(part[2] for part in parts), strict=True)
            ]
        facts = {"count": states_ND.shape[0], "top": top, "drawn": job.seed is not None}
        return facts, blobs

    def forget(self, key: str) -> None:
        """Drop a prefill that was given up."""
        self._asked.pop(key, None)
        self._rows.pop(key, None)

    def _keep(self, hidden_states: torch.Tensor, scheduled: Mapping[str, int]) -> None:
        runner = self._runner
        for request_id, count in scheduled.items():
            request = runner.requests[request_id]
            job = job_of(request.sampling_params)
            if job is None:
                continue
            prompt: Sequence[int] = request.prompt_token_ids
            self._asked.setdefault(job.key, (job, [*prompt, job.last]))
            computed = request.num_computed_tokens
            begin = max(computed, job.start - 1)
            end = min(computed + count, len(prompt))
            if begin >= end:
                continue
            offset = int(runner.query_start_loc.np[runner.input_batch.req_id_to_index[request_id]])
            rows = hidden_states[offset + begin - computed : offset + end - computed]
            kept = self._rows.setdefault(job.key, {})
            kept.update(zip(range(begin, end), rows.to("cpu", copy=True).unbind(), strict=True))

    def _chunk(self, states_ND: torch.Tensor) -> int:
        vocab = int(self._runner.model_config.get_vocab_size())
        return max(1, min(states_ND.shape[0], _LOGIT_BUDGET // vocab))

    def _judge(
        self, job: PrefillJob, tokens: Sequence[int], first: int, states_ND: torch.Tensor
    ) -> tuple[NDArray[np.float32], list[Any], tuple[NDArray[np.float64], ...]]:
        """Log-probabilities, alternatives and draws of the positions from `first` of the rows."""
        count = states_ND.shape[0]
        logits_NV = self._compute(states_ND.to(self._runner.device)).float().cpu()
        if job.temperature not in (0.0, 1.0):
            logits_NV = logits_NV / job.temperature
        begin = job.start + first
        chosen_N = torch.tensor(tokens[begin : begin + count])
        logprobs_NV = logits_NV.log_softmax(dim=-1)
        top: list[Any] = [() for _ in range(count)]
        if job.top:
            values_NK, tokens_NK = logprobs_NV.topk(min(job.top, logprobs_NV.shape[1]), dim=-1)
            pairs = zip(tokens_NK.tolist(), values_NK.tolist(), strict=True)
            top = [list(zip(ids, values, strict=True)) for ids, values in pairs]
        drawn: tuple[NDArray[np.float64], ...] = ()
        if job.seed is not None:
            found = draws(logprobs_NV, chosen_N, job.seed, job.positions[first : first + count])
            # in the order of PrefillDraws, which the engine makes of them again
            drawn = (found.means, found.variances, found.race_gaps, found.lower, found.upper)
        return logprobs_NV.gather(1, chosen_N[:, None])[:, 0].numpy(), top, drawn
