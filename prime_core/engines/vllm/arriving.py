"""What comes back from vLLM, given to the work that asked for it: tokens, rows, prefills.

Used by the driver's thread alone. Commitments are fed in one thread of their own, in order, beside
vLLM's next forward pass; a generation is told of once its commitment has every row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.api import EngineError, Prefill, PrefillDraws
from prime_core.engines.vllm.work import Generating, Prefilling
from prime_core.toploc import INTERVAL

if TYPE_CHECKING:
    import torch

_DTYPES = {"float32": 4, "bfloat16": 2}


class Arrivals:
    """The work that is under way, by key.

    Args:
        dtype: of the hidden states.
    """

    def __init__(self, dtype: str) -> None:
        self._dtype = dtype
        self.work: dict[str, Generating | Prefilling] = {}
        self._feeder = ThreadPoolExecutor(
            1, thread_name_prefix="commitments", initializer=_use_one_core
        )

    def tokens(self, news: Sequence[Sequence[Any]], data: bytes) -> list[str]:
        """New tokens: (key, ids, log-probabilities, rows, reason) each, and all rows as bytes.

        Returns:
            Keys of those that ended with an error here, while vLLM goes on with them.
        """
        broken = []
        rows = self._rows(data, sum(kept for _, _, _, kept, _ in news))
        taken = 0
        for key, ids, logprobs, kept, reason in news:
            work = self.work.get(key)
            block = rows[taken : taken + kept] if kept else None
            taken += kept
            if not isinstance(work, Generating):
                continue  # it ended meanwhile
            if any(math.isnan(value) for value in logprobs):
                self.fail(key, "logits hold NaN")
                broken.append(key)
                continue
            work.tokens += ids
            work.logprobs += logprobs
            if block is not None:
                self._hand_over(work, block)
            if work.request.on_token is not None:
                for index, token in enumerate(ids):
                    work.request.on_token(token, reason if index == len(ids) - 1 else "")
            if reason:
                self.end(key, reason)
        return broken

    def end(self, key: str, reason: str) -> None:
        """A generation is over: tell of it behind the rows that its commitment still waits for."""
        work = self.work.pop(key)
        assert isinstance(work, Generating)
        self._feed(work)

        def finish() -> None:
            try:
                for fed in work.feeding:
                    fed.result()
                found: Any = work.generation(reason)
            except Exception as error:  # noqa: BLE001 - whoever awaits the generation raises it
                found = error
            work.done(found)

        self._feeder.submit(finish)

    def prefilled(self, header: Mapping[str, Any], blobs: Sequence[bytes]) -> None:
        """A prefill is over."""
        work = self.work.pop(header["key"])
        assert isinstance(work, Prefilling)
        count = header["count"]
        draws = None
        if header["drawn"]:
            draws = PrefillDraws(*(np.frombuffer(blob, dtype=np.float64) for blob in blobs[2:]))
        top = tuple(
            tuple((int(token), float(value)) for token, value in each) for each in header["top"]
        )
        hidden = np.frombuffer(blobs[1], dtype=np.float32)
        work.result.set_result(
            Prefill(
                logprobs=np.frombuffer(blobs[0], dtype=np.float32),
                hidden_states=hidden.reshape(count, math.ceil(hidden.size / max(count, 1))),
                top=top if work.request.top else (),
                draws=draws,
            )
        )

    def fail(self, key: str, what: str) -> None:
        """One request can't be answered; vLLM goes on with the others."""
        work = self.work.pop(key)
        _end(
            work,
            EngineError(
                what,
                where=f"request {work.request.id}" if isinstance(work, Generating) else "prefill",
                fix="use dtype float32, or look at the weights that the trainer published",
            ),
        )

    def give_up(self, error: EngineError) -> None:
        """Everything under way ends with the error."""
        works, self.work = self.work, {}
        for work in works.values():
            _end(work, error)

    def close(self) -> None:
        """End the commitments' thread, once it has done what it was given."""
        self._feeder.shutdown()

    def _rows(self, data: bytes, count: int) -> Any:
        if not count:
            return None
        import torch

        dtype = getattr(torch, self._dtype)
        width = len(data) // count // _DTYPES[self._dtype]
        # A copy: bytes can't be written to, and torch warns of tensors over them.
        return torch.frombuffer(bytearray(data), dtype=dtype).reshape(count, width)

    def _hand_over(self, work: Generating, block: torch.Tensor) -> None:
        if work.keeps_rows:
            work.rows.append(block)
        if work.request.commitment is None:
            return
        work.pending.append(block)
        if sum(len(rows) for rows in work.pending) >= INTERVAL:
            self._feed(work)

    def _feed(self, work: Generating) -> None:
        if not work.pending or work.request.commitment is None:
            return
        import torch

        rows, work.pending = torch.cat(work.pending), []
        work.feeding.append(self._feeder.submit(work.request.commitment.add, rows))


def _end(work: Generating | Prefilling, error: EngineError) -> None:
    if isinstance(work, Prefilling):
        work.result.set_exception(error)
    else:
        work.done(error)


def _use_one_core() -> None:
    """Commitments are computed beside vLLM, which has the other cores."""
    import torch

    torch.set_num_threads(1)
