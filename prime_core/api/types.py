"""The values that cross the plugin boundary: tasks, completions, scores, rewards, groups.

All are frozen dataclasses of plain data, so that a host can send them over a pipe as JSON.
Nothing here knows about tokens' text or tensors; the engine's values stand in `inference.py`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, Union

Json: TypeAlias = Union[bool, int, float, str, list["Json"], dict[str, "Json"], None]

Role = Literal["system", "user", "assistant", "tool"]
ScoreStatus = Literal["scored", "invalid_output", "abstained", "error"]
FinishReason = Literal["stop", "length", "turns"]

SCORE_STATUSES: tuple[str, ...] = ("scored", "invalid_output", "abstained", "error")
VALUELESS_STATUSES: tuple[str, ...] = ("abstained", "error")


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class Task:
    """One problem.

    The fields follow the GENESYS schema (SYNTHETIC-1): `id` is its problem_id, `gold` its
    gold_standard_solution, `verification` its verification_info.

    Attributes:
        id: unique within its environment, stable between loads.
        prompt: the messages before any length-budget instruction.
        gold: the reference answer, or None where only `verification` judges.
        verification: data for the verifier, plain JSON.
        metadata: anything else, plain JSON; never read by the engine except columns a filter names.
        task_type: routes to a verifier where one environment uses several; "" where it does not.
        source: where the task comes from; "" where unknown.
    """

    id: str
    prompt: tuple[Message, ...]
    gold: str | None = None
    verification: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    task_type: str = ""
    source: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """What the model said for one task, as a verifier sees it.

    Attributes:
        text: the model's last turn, decoded, without special tokens.
        messages: all messages after the prompt: the model's and the environment's, in order.
        finish_reason: stop (the model ended), length (token limit), turns (turn limit).
        token_count: model tokens over all turns, the EOS token included.
    """

    text: str
    messages: tuple[Message, ...] = ()
    finish_reason: FinishReason = "stop"
    token_count: int = 0


@dataclass(frozen=True, slots=True)
class Score:
    """A verifier's verdict on one completion.

    `scored` and `invalid_output` carry a finite value in the declared range (`invalid_output` the
    lowest one: no answer, no code, the model's program ran out of time). `abstained` and `error`
    carry None: the rollout leaves its group's baseline and ends as the outcome unscored.
    """

    value: float | None
    status: ScoreStatus = "scored"
    parts: Mapping[str, float] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.status not in SCORE_STATUSES:
            raise ValueError(f"score status {self.status!r} is not one of {SCORE_STATUSES}")
        if (self.value is None) != (self.status in VALUELESS_STATUSES):
            raise ValueError(f"a score of status {self.status!r} can't have value {self.value!r}")
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"a score can't be {self.value!r}")


@dataclass(frozen=True, slots=True)
class GoldReport:
    """Whether a verifier can judge by a gold answer, as its `check_gold` says.

    Attributes:
        ok: it reads as an answer, and equals itself.
        type: what the verifier takes it for, e.g. integer; "" where it is nothing.
        reason: why it isn't ok; "" where it is.
    """

    ok: bool
    type: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ScoredRollout:
    """One rollout of a group, as a reward function and an online filter see it."""

    completion: Completion
    score: Score


@dataclass(frozen=True, slots=True)
class ScoredGroup:
    """Rollouts of one task that carry a score value, with the group's one length target.

    Rollouts of status abstained or error never appear here: they have no reward.
    """

    task: Task
    rollouts: tuple[ScoredRollout, ...]
    length_budget: int | None = None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Reward:
    """The number GRPO trains on, and its named parts. `total` is finite."""

    total: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RewardedGroup:
    """A finished group, as online filters and observers see it.

    `group` and `rewards` are parallel: one reward per scored rollout. The intake holds tokens, not
    tasks: its task has an id and, decoded, the whole prompt as one user message; gold is None.
    """

    id: str
    environment: str
    group: ScoredGroup
    rewards: tuple[Reward, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """A data filter's answer; the reason is counted and shown, so it is short and stable."""

    keep: bool
    reason: str


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """How often a reference model solves a task: `passes` of `attempts` completions.

    `pass_rate` may also come from a column of the data, with attempts 0.
    """

    task_id: str
    pass_rate: float
    attempts: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Instruction:
    """The text of a length budget and the message it is appended to."""

    text: str
    place: Literal["system", "user"] = "user"


@dataclass(frozen=True, slots=True)
class Reply:
    """An environment's answer in a task of several turns."""

    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class TurnState:
    """What an environment sees when it answers: the task, its prompt, and all messages since.

    An environment keeps no state of its own between calls: everything it needs is here, so that
    any host can answer any turn.
    """

    task: Task
    prompt: tuple[Message, ...]
    messages: tuple[Message, ...]
    turn: int


@dataclass(frozen=True, slots=True)
class EnvironmentInfo:
    """What an environment declares about itself.

    Attributes:
        score_range: lowest and highest value its verifier gives.
        chance_level: the mean score of a policy that doesn't look at the task.
        dataset_digest: SHA-256 (hex) over the tasks in order.
        needs: names of capabilities, e.g. "sandbox:namespaces"; empty for none.
    """

    name: str
    version: str
    dataset_digest: str
    licence: str
    score_range: tuple[float, float] = (0.0, 1.0)
    chance_level: float = 0.0
    deterministic: bool = True
    needs: tuple[str, ...] = ()
