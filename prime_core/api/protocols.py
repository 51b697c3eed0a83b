"""The objects that specs make. A plugin implements one of these; the engine calls nothing else.

Environments, verifiers and reward functions run in environment hosts; every other kind runs in the
engine's process. Contract test classes for each stand in `prime_core.testing.contract`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from prime_core.api.types import (
    Completion,
    Decision,
    EnvironmentInfo,
    Instruction,
    Message,
    Reply,
    Reward,
    RewardedGroup,
    Score,
    ScoredGroup,
    Task,
    TaskProfile,
    TurnState,
)

if TYPE_CHECKING:
    from prime_core.api.inference import (
        EngineCapabilities,
        Generation,
        GenerationRequest,
        PolicyFiles,
        Prefill,
        PrefillRequest,
    )


class Rng(Protocol):
    """The engine's own seeded words; equal on every machine and numpy version."""

    def word(self) -> int:
        """The next uniform 64-bit word."""
        ...

    def below(self, n: int) -> int:
        """A uniform integer in [0, n)."""
        ...

    def uniform(self) -> float:
        """A uniform float in [0, 1), a multiple of 2**-53."""
        ...


@runtime_checkable
class Verifier(Protocol):
    """Decides whether one completion solves one task.

    Optional members, which `prime-core verify` and a run's preparation use; all depend on their
    arguments alone:

    * `from_case(row) -> (Task, Completion)` reads one row of a case file (plain JSON);
    * `explain(gold, text)` returns a dataclass or mapping of plain values that says what was read
      from a completion's text, and which rule decided;
    * `check_gold(gold) -> GoldReport` says whether a gold answer can be judged by;
    * `second_opinion(task, completion) -> float | None` asks another grader, None for no opinion.
    """

    def verify(self, task: Task, completion: Completion) -> Score | Awaitable[Score]:
        """Score one completion. Depends on its arguments alone; may be async."""
        ...


@runtime_checkable
class Environment(Protocol):
    """A set of tasks, how they are rendered, and who judges them.

    Optional members: `reply(state) -> Reply | None` for several turns (None ends the rollout);
    `gold(task) -> str` (a completion that solves it) and `wrong(task, rng) -> str` (one that
    doesn't), which the conformance checks use; `notes` (a sequence of lines on what was left out
    of the data, and why), which a run's preparation prints.
    """

    @property
    def info(self) -> EnvironmentInfo:
        """Name, version, digest, licence, range."""
        ...

    @property
    def verifier(self) -> str | Verifier:
        """The name of a verifier plugin, or an object of its own."""
        ...

    def tasks(self) -> Sequence[Task]:
        """All tasks, random access, the same order every time."""
        ...

    def render(self, task: Task, budget: Instruction | None) -> Sequence[Message]:
        """The messages that the model sees."""
        ...


@runtime_checkable
class MultiTurnEnvironment(Environment, Protocol):
    """An environment that answers the model."""

    def reply(self, state: TurnState) -> Reply | None:
        """The next messages, or None to end the rollout."""
        ...


@runtime_checkable
class RewardFunction(Protocol):
    """Turns the scores and lengths of a group into the numbers GRPO trains on."""

    def reward(self, group: ScoredGroup) -> Sequence[Reward]:
        """One reward per rollout of the group, in order."""
        ...


@runtime_checkable
class LengthBudget(Protocol):
    """Draws the thinking-token target that a group's prompt asks for. A wish, never a limit."""

    def draw(self, rng: Rng, task: Task, node_class: str, step: int) -> int | None:
        """The group's target in tokens, or None for no target."""
        ...

    def instruction(self, budget: int) -> Instruction:
        """The text that asks for it, and the message it goes to."""
        ...


@runtime_checkable
class TaskFilter(Protocol):
    """An offline data filter."""

    def keep_task(self, task: Task, profile: TaskProfile | None) -> Decision:
        """Keep or drop a task before the run."""
        ...


@runtime_checkable
class GroupFilter(Protocol):
    """An online data filter."""

    def keep_group(self, group: RewardedGroup) -> Decision:
        """Keep or drop a finished group."""
        ...


class InferenceEngine(Protocol):
    """Generates completions with one policy at a time.

    Optional member: `figures`, a mapping of names to numbers (queue, cache use, preemptions) that a
    worker puts into its metrics as `engine/<name>`.
    """

    @property
    def capabilities(self) -> EngineCapabilities:
        """What it can prove."""
        ...

    def load(self, policy: PolicyFiles) -> bytes:
        """Load the weights; returns the digest of the bytes it read (invariant 8)."""
        ...

    def generate(self, requests: AsyncIterator[GenerationRequest]) -> AsyncIterator[Generation]:
        """A stream of requests in, a stream of generations out, one a request, in any order.

        Batches depend only on the stream's order: `batch_size` consecutive requests form one, and
        the end of the stream flushes the last. Not so where the capabilities have a
        `continuous_batch`: there streams may run beside each other.
        """
        ...

    def cancel(self, group_id: str) -> None:
        """End the group's unfinished requests with finish reason cancelled."""
        ...

    def prefill(self, requests: Sequence[PrefillRequest]) -> list[Prefill]:
        """Recompute log-probabilities and hidden states of given sequences."""
        ...

    def close(self) -> None:
        """Give memory and threads back."""
        ...


@runtime_checkable
class Tracker(Protocol):
    """Receives metrics. Its exceptions are logged and counted, never fatal."""

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Record the metrics of one step."""
        ...

    def close(self) -> None:
        """Flush."""
        ...


class AdvantageFunction(Protocol):
    """Turns the rewards of one group into advantages; equal rewards give exactly 0."""

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """One advantage per reward, [G] to [G]."""
        ...


class Loss(Protocol):
    """The policy loss of one micro-batch. Shapes and the legend stand in `prime_core.trainer`."""

    def token_losses(
        self, logprobs: Any, old_logprobs: Any, advantages: Any, mask: Any
    ) -> tuple[Any, Mapping[str, Any]]:
        """Per-token losses, [T] torch float32, and per-token metrics to be masked and summed."""
        ...
