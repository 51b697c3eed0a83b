"""A submission as a sanity check sees it: its rows, what was announced, and the signed statement.

Made by the validator; plugins read it. Every value but a hash is the word of a machine nobody
trusts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class RolloutView(Protocol):
    """One row of a submission; docs/reference/rollout-format.md says what each column holds.

    T is the length of the completion, N of its tokens are the model's.
    """

    @property
    def environment(self) -> str:
        """Label of the environment."""
        ...

    @property
    def task_id(self) -> str:
        """Id of the task."""
        ...

    @property
    def group_id(self) -> str:
        """`<step>-<node>-<submission>-<k>`."""
        ...

    @property
    def sample(self) -> int:
        """0..G-1."""
        ...

    @property
    def step(self) -> int:
        """The step that it was made for."""
        ...

    @property
    def policy_version(self) -> int:
        """The version that generated it."""
        ...

    @property
    def node(self) -> str:
        """The node's name."""
        ...

    @property
    def submission(self) -> int:
        """The submission's index."""
        ...

    @property
    def max_tokens(self) -> int:
        """Limit on model tokens."""
        ...

    @property
    def prompt_tokens(self) -> Sequence[int]:
        """[P] token ids."""
        ...

    @property
    def completion_tokens(self) -> Sequence[int]:
        """[T] token ids."""
        ...

    @property
    def completion_mask(self) -> Sequence[bool]:
        """[T]; False where the environment spoke."""
        ...

    @property
    def completion_logprobs(self) -> Sequence[float]:
        """[T]; 0 where the environment spoke."""
        ...

    @property
    def finish_reason(self) -> str:
        """stop, length or turns."""
        ...

    @property
    def length_budget(self) -> int | None:
        """The group's target in tokens."""
        ...

    @property
    def sampling_seed(self) -> int:
        """63 bits."""
        ...

    @property
    def temperature(self) -> float:
        """Of the sampling."""
        ...

    @property
    def score(self) -> float | None:
        """None exactly where the status carries no value."""
        ...

    @property
    def score_status(self) -> str:
        """scored, invalid_output, abstained or error."""
        ...

    @property
    def reward(self) -> float | None:
        """None exactly where the score is."""
        ...

    @property
    def reward_parts(self) -> Mapping[str, float]:
        """Named parts of the reward."""
        ...

    @property
    def proofs(self) -> bytes:
        """Commitments, one per 32 model tokens, concatenated."""
        ...

    @property
    def policy_digest(self) -> bytes:
        """32 bytes, the seal of the version."""
        ...

    @property
    def turn_ends(self) -> Sequence[int]:
        """Token offsets (exclusive) where the model's turns end."""
        ...

    @property
    def length(self) -> int:
        """Model tokens (N), EOS included."""
        ...


@dataclass(frozen=True, slots=True)
class SubmissionView:
    """A submission, and what its dispatch announced.

    Attributes:
        step, node, n: its name in the store.
        policy_version, policy_digest: what the dispatch announced; the digest in hex.
        groups, group_size, node_class: as announced.
        run_id: that of the dispatch.
        sha256, size: of the file's bytes.
        rows: in (k, sample) order; empty in the stage `file`, before anything was decoded.
        metadata: run_id, lock_digest, engine_fingerprint of the file; empty in the stage `file`.
    """

    run_id: str
    step: int
    node: str
    n: int
    policy_version: int
    policy_digest: str
    groups: int
    group_size: int
    node_class: str
    sha256: str
    size: int
    rows: Sequence[RolloutView] = ()
    metadata: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """The signed statement beside a submission, its signature verified; `signer` is an address."""

    run_id: str
    step: int
    node: str
    n: int
    sha256: str
    size: int
    signer: str
