"""What a check context answers: facts of run and node, assignments, recomputed values.

The validator fills them in; sanity-check plugins compare rows with them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from prime_core.api.types import Reward, Score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What the run knows of a node.

    Attributes:
        address: whose signature its statements carry; None where the run doesn't know the node.
        accepted, rejected: files judged so far that it signed.
        clean: those accepted since the last rejection, in full files' worth of groups.
    """

    name: str
    address: str | None
    provider: str
    node_class: str
    stake: int
    accepted: int = 0
    rejected: int = 0
    clean: int = 0


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What the run's config and lock demand of every row and file.

    Attributes:
        max_tokens: token limit of a completion, of the submission's node class.
        max_total_tokens: limit on prompt and completion together.
        vocabulary: token ids are below it.
        stop_ids: every EOS token.
        score_ranges: lowest and highest score by environment label.
        deterministic: labels of environments that declare themselves so.
        max_groups: of one submission.
        multi_turn: labels of environments that answer the model.
        dtype: float32 or bfloat16, of the served weights: what rounding may differ by.
    """

    run_id: str
    lock_digest: str
    engine_fingerprint: str
    temperature: float
    max_tokens: int
    max_prompt_tokens: int
    max_total_tokens: int
    max_turns: int
    vocabulary: int
    stop_ids: frozenset[int]
    score_ranges: Mapping[str, tuple[float, float]]
    deterministic: frozenset[str]
    max_groups: int
    group_size: int
    dtype: str = "float32"
    multi_turn: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AssignedGroup:
    """What the assignment demands of one group.

    Attributes:
        failure: why it can have no prompt; "" where it has one.
        host_failed: whether that was a host of ours, which says nothing of the node's.
    """

    group_id: str
    environment: str
    task_id: str
    seeds: tuple[int, ...]
    length_budget: int | None
    prompt_tokens: tuple[int, ...]
    failure: str = ""
    host_failed: bool = False


@dataclass(frozen=True, slots=True)
class RowPrefill:
    """What the claimed policy says of one row's N model tokens, by one forward pass.

    Attributes:
        logprobs: [N] of the chosen tokens at the run's temperature.
        means: [N] expected log-probability of a token drawn there (minus the entropy).
        variances: [N] variance of that log-probability.
        race_gaps: [N] nats by which the chosen token lost its seeded Gumbel race; 0 where it won.
        lower, upper: [N] probability of drawing a less probable token than the chosen one, and of
            drawing one that is no more probable.
    """

    logprobs: NDArray[np.float64]
    means: NDArray[np.float64]
    variances: NDArray[np.float64]
    race_gaps: NDArray[np.float64]
    lower: NDArray[np.float64]
    upper: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ProofChunk:
    """How one commitment compares with the recomputed rows of its chunk."""

    chunk: int
    exponent_mismatches: int
    mantissa_mean: float
    mantissa_median: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class ProofReport:
    """The comparison of one row's commitments; `error` where its bytes aren't proofs."""

    chunks: tuple[ProofChunk, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What the run's own environment host says of one row.

    Attributes:
        score: the verifier's, recomputed.
        reward, parts: the reward function's, over the group's recomputed scores; None and empty
            where the score has no value.
        limited: a resource limit decided (time, memory), here or as the node says: two machines
            may differ.
        mismatch: "" where the conversation is what the environment would have made of the model's
            turns; else how it differs.
        claimed: where the environment isn't deterministic and the node's scores of the group differ
            from ours, the reward function's word on the node's; else None.
    """

    score: Score
    reward: float | None
    parts: Mapping[str, float]
    limited: bool = False
    mismatch: str = ""
    claimed: Reward | None = None
