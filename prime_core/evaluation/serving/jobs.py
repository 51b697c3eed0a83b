"""A whole request: its choices, run together, and what came of them piece by piece.

Made by `app` from a body. Invariant: when a job ends, however it ends, none of its choices is
generated any more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass

from prime_core.evaluation.serving.bodies import ChatBody, CompletionBody, Sampled
from prime_core.evaluation.serving.choices import Choice, Wish
from prime_core.evaluation.serving.desk import Desk, sampling_seed


@dataclass
class Job:
    """The choices of one request, prompt by prompt.

    Attributes:
        prompt_tokens: over all prompts, each counted once.
    """

    choices: list[Choice]
    prompt_tokens: int

    @property
    def usage(self) -> dict[str, int]:
        """Token counts, as clients are billed elsewhere."""
        said = sum(len(choice.tokens) for choice in self.choices)
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": said,
            "total_tokens": self.prompt_tokens + said,
        }

    async def run(self) -> None:
        """All choices to their ends.

        Raises:
            PrimeError: the engine failed.
        """
        try:
            await asyncio.gather(*(choice.run() for choice in self.choices))
        finally:
            self._leave()

    async def pieces(self) -> AsyncIterator[tuple[Choice, str, bool]]:
        """Pieces of text as they come, and each choice's end; see `run`."""
        told: asyncio.Queue[tuple[Choice, str, bool]] = asyncio.Queue()
        for choice in self.choices:
            choice.listener = _teller(told, choice)
        tasks = [asyncio.create_task(_to_the_end(choice, told)) for choice in self.choices]
        try:
            going_on = len(tasks)
            while going_on:
                choice, text, ended = await told.get()
                if ended:
                    await tasks[self.choices.index(choice)]  # its error is the job's
                    going_on -= 1
                yield choice, text, ended
        finally:
            self._leave()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _leave(self) -> None:
        for choice in self.choices:
            choice.leave()


def completion_job(desk: Desk, body: CompletionBody) -> Job:
    """The job of a /v1/completions body; Refused where it can't be done."""
    limit = 16 if body.max_tokens is None else body.max_tokens
    prompts = [desk.encode(prompt) for prompt in body.prompts()]
    limits = [desk.room(prompt, limit) for prompt in prompts]
    return _job(desk, body, prompts, limits, body.logprobs, echo=body.echo)


def chat_job(desk: Desk, body: ChatBody) -> Job:
    """The job of a /v1/chat/completions body; Refused where it can't be done."""
    wanted = body.max_tokens if body.max_completion_tokens is None else body.max_completion_tokens
    prompt = desk.encode_chat([message.message() for message in body.messages])
    alternatives = (body.top_logprobs or 0) if body.logprobs else None
    return _job(desk, body, [prompt], [desk.room(prompt, wanted)], alternatives, echo=False)


def _job(
    desk: Desk,
    body: Sampled,
    prompts: Sequence[tuple[int, ...]],
    limits: Sequence[int],
    alternatives: int | None,
    *,
    echo: bool,
) -> Job:
    desk.admit(len(prompts) * body.n)
    seed = secrets.randbits(63) if body.seed is None else body.seed
    choices = [
        Choice(
            desk,
            number * body.n + k,
            Wish(
                prompt=prompt,
                max_tokens=limit,
                temperature=body.temperature,
                seed=sampling_seed(seed, number, k),
                stops=tuple(body.stop),
                alternatives=alternatives,
                echo=echo,
            ),
        )
        for number, (prompt, limit) in enumerate(zip(prompts, limits, strict=True))
        for k in range(body.n)
    ]
    return Job(choices, sum(map(len, prompts)))


def _teller(told: asyncio.Queue[tuple[Choice, str, bool]], choice: Choice) -> Callable[[str], None]:
    def tell(text: str) -> None:
        if text:
            told.put_nowait((choice, text, False))

    return tell


async def _to_the_end(choice: Choice, told: asyncio.Queue[tuple[Choice, str, bool]]) -> None:
    try:
        await choice.run()
    finally:
        told.put_nowait((choice, "", True))
