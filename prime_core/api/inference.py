"""The values that cross the inference-engine boundary: requests, generations, prefills, policies.

Arrays are numpy; the module imports numpy for types only, so that the api stays quick to import.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from prime_core.api.types import Message


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """A policy on local disk, checked by whoever hands it over.

    Attributes:
        version: the policy version.
        model_dir: config.json and the tokenizer's files (the same for every version of a run).
        weights: safetensors files that together hold every tensor.
        digest: 32 bytes, the seal of the manifest (zeros for a policy that has none).
    """

    version: int
    model_dir: Path
    weights: tuple[Path, ...]
    digest: bytes


class Commitment(Protocol):
    """Takes the final hidden states of one rollout while it is generated."""

    def add(self, rows: Any) -> None:
        """Take rows [n, hidden] (torch, on the CPU), in order; called on one thread at a time.

        Raises:
            EngineError: a state isn't finite.
        """
        ...


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One turn of one rollout, token-in.

    Attributes:
        id: unique within the stream, e.g. `<group_id>/<sample>`.
        group_id: for `cancel`.
        token_ids: prompt and everything since, [T] ints.
        seed: the rollout's 63-bit sampling seed.
        position: model tokens already generated in earlier turns; noise of the i-th token of this
            turn is gumbel(seed, position + i, token).
        max_tokens: at most this many new tokens.
        temperature: > 0; 0 is greedy (no noise).
        on_token: called in the engine's thread after each new token, with the token and how it
            ended the turn (stop or length; "" where it didn't). It must return at once and not
            raise. An engine that can't tell one token at a time never calls it.
        messages: the conversation so far, for engines whose capabilities have no `token_ids`; they
            read this in the tokens' place.
        commitment: gets the row that chose each new token, all of them before the generation is
            given out, from engines whose capabilities say `commitments`.
    """

    id: str
    group_id: str
    token_ids: tuple[int, ...]
    seed: int
    position: int
    max_tokens: int
    temperature: float
    on_token: Callable[[int, str], None] | None = field(default=None, compare=False, repr=False)
    messages: tuple[Message, ...] = ()
    commitment: Commitment | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one answer of a remote model took, as its server counts.

    Attributes:
        prompt_tokens, completion_tokens: 0 where the server doesn't say.
        cost: in the currency of the engine's prices; 0.0 without prices.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Generation:
    """One finished turn, token-out. N is the number of new tokens, the EOS token included.

    Attributes:
        token_ids: [N] ints.
        logprobs: [N] float32, log-softmax(logits / temperature) at the chosen token
            (of the plain logits when greedy).
        finish_reason: stop (EOS), length (max_tokens), cancelled (see `cancel`).
        hidden_states: [N, D] float32 or None: row i is the post-norm final hidden state whose
            logits chose token i (DESIGN: the first comes from the prefill's last position).
        text: what an engine without `token_ids` said; its token_ids and logprobs are empty, which
            means unknown, not nothing. "" of every other engine.
        usage: of an engine without `token_ids`; None of every other.
        failure: why such an engine gave this request up; "" where it was answered.
    """

    id: str
    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: Literal["stop", "length", "cancelled"]
    hidden_states: NDArray[np.float32] | None = None
    text: str = ""
    usage: Usage | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True)
class PrefillDraws:
    """How the recomputed distributions fit the tokens that were drawn; N is T - start.

    Attributes:
        means, variances: [N] float64, of the log-probability of a token drawn at each position.
        race_gaps: [N] float64, nats by which the token lost its seeded Gumbel race; 0 where it won,
            and at positions below 0.
        lower, upper: [N] float64, probability of drawing a less probable token, and of drawing one
            that is no more probable: where the token stands between the rarest and the likeliest.
    """

    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    race_gaps: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Prefill:
    """One forward pass over a whole sequence of T tokens.

    Attributes:
        logprobs: [T - start] float32 of tokens start..T-1 given what precedes each.
        hidden_states: [T - start, D] float32, the rows that choose those tokens.
        top: for each of these positions the `PrefillRequest.top` most probable tokens and their
            log-probabilities, best first; empty where none were asked for.
        draws: None where `PrefillRequest.seed` was None.
    """

    logprobs: NDArray[np.float32]
    hidden_states: NDArray[np.float32]
    top: tuple[tuple[tuple[int, float], ...], ...] = ()
    draws: PrefillDraws | None = None


@dataclass(frozen=True, slots=True)
class PrefillRequest:
    """A sequence and the first position (>= 1) whose choice is to be recomputed.

    Attributes:
        top: alternatives wanted at each position.
        seed: the rollout's sampling seed, where `Prefill.draws` is wanted.
        positions: [T - start] index of each token among the rollout's model tokens, as
            `GenerationRequest.position` counts; below 0 where the environment spoke.
    """

    token_ids: Sequence[int]
    start: int
    temperature: float
    top: int = 0
    seed: int | None = None
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineCapabilities:
    """What an engine can prove, and the fingerprint that a submission's metadata carries.

    Attributes:
        token_ids: it takes and returns token ids with log-probabilities. Without them it speaks
            text: nothing that it says can be proven or trained on, and it holds no policy of ours.
        commitments: it feeds the `commitment` of each request.
        continuous_batch: requests that it generates together, where a new one takes the place of
            one that ends, and streams share the batch; 0 where streams are worked off in turn.
    """

    name: str
    fingerprint: str
    hidden_states: bool
    seeded_sampling: bool
    token_ids: bool = True
    commitments: bool = False
    continuous_batch: int = 0
