"""The environment inside a host, with its verifier and reward: the calls that a pool can make.

Made by the host's loop from the first message; every call takes and returns plain JSON. Invariant:
a value that a plugin returned leaves here checked, or as a `FormatError`.
"""

from __future__ import annotations

import hashlib
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from prime_core import __version__
from prime_core.api.errors import FormatError, PluginError
from prime_core.api.protocols import Environment, RewardFunction, Verifier
from prime_core.api.specs import API_VERSION
from prime_core.api.types import ScoredGroup, Task, TurnState
from prime_core.config.sections import EnvironmentChoice, PluginChoice
from prime_core.hosting import values, wire
from prime_core.hosting.judging import Judge
from prime_core.hosting.sandboxing import host_sandboxes
from prime_core.hub import Hub, RunContext

IDS_CHECKED = 200_000  # task ids compared at most; above it, an even sample


class HashRng:
    """Seeded words for `wrong(task, rng)`: SHA-256 of seed and counter, equal everywhere."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._count = 0

    def word(self) -> int:
        """The next uniform 64-bit word."""
        self._count += 1
        block = hashlib.sha256(f"{self._seed}/{self._count}".encode()).digest()
        return int.from_bytes(block[:8], "big")

    def below(self, n: int) -> int:
        """A uniform integer in [0, n), without modulo bias."""
        limit = (1 << 64) - (1 << 64) % n
        while True:
            word = self.word()
            if word < limit:
                return word % n

    def uniform(self) -> float:
        """A uniform float in [0, 1), a multiple of 2**-53."""
        return (self.word() >> 11) / (1 << 53)


class HostedEnvironment:
    """An environment, its verifier and its reward, made by the hub of this interpreter."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._hub = Hub.discover(block=tuple(request["block"]))
        run_dir = request["run_dir"]
        self.sandboxes = host_sandboxes(self._hub, request)
        self._context = RunContext(
            run_dir=None if run_dir is None else Path(run_dir),
            cache_dir=Path(request["cache_dir"]),
            offline=bool(request["offline"]),
            sandboxes=self.sandboxes,
        )
        self._choice = EnvironmentChoice.model_validate(request["environment"])
        _log_phase(f"making environment {self._choice.use}")
        made = self._hub.make("environment", self._choice, self._context)
        assert isinstance(made, Environment)
        self._environment: Any = made
        _log_phase("making its verifier")
        self._verifier_choice, verifier = self._make_verifier()
        self._verifier_class = type(verifier).__qualname__
        self._judge = Judge(verifier)
        self._reward_choice: PluginChoice | None = None
        self._reward: RewardFunction | None = None
        if request["reward"] is not None:
            self._reward_choice = PluginChoice.model_validate(request["reward"])
            _log_phase(f"making reward {self._reward_choice.use}")
            reward = self._hub.make("reward", self._reward_choice, self._context)
            assert isinstance(reward, RewardFunction)
            self._reward = reward
        _log_phase("listing tasks")
        self._tasks: Sequence[Task] = self._environment.tasks()
        self._indices: dict[str, int] | None = None
        self.calls: dict[str, Callable[[Any], Any]] = {
            "tasks": lambda index: wire.task_json(self._tasks[index]),
            "find": self._find,
            "render": self._render,
            "score": self._score,
            "reward": self._reward_group,
            "reply": self._reply,
            "gold": lambda index: values.text(self._environment.gold(self._tasks[index]), "gold"),
            "wrong": self._wrong,
            "check_gold": lambda index: self._judge.check_gold(self._tasks[index].gold),
        }

    def _make_verifier(self) -> tuple[PluginChoice | None, Verifier]:
        choice = self._choice.verifier
        own: object = self._environment.verifier
        if choice is None and isinstance(own, str):
            choice = PluginChoice(use=own)
        if choice is not None:
            own = self._hub.make("verifier", choice, self._context)
        if not isinstance(own, Verifier):
            raise PluginError(
                f"its verifier is a {type(own).__name__}, neither a name nor a Verifier",
                plugin=f"environment.{self._choice.use}",
                distribution=None,
                phase="configured",
                fix="return a verifier's name, or an object with verify(task, completion)",
            )
        return choice, own

    def describe(self, full: bool) -> dict[str, Any]:
        """What the pool knows of this environment; `full` adds the costly parts.

        Raises:
            FormatError: two tasks with one id, or members that aren't what they should be.
        """
        environment = self._environment
        description: dict[str, Any] = {
            "info": wire.info_json(environment.info),
            "task_count": len(self._tasks),
        }
        if not full:
            return description
        verifier = self._verifier_choice
        rewards = {} if self._reward_choice is None else {"reward": self._reward_choice}
        choices = {"environment": self._choice, **rewards}
        named = choices if verifier is None else {**choices, "verifier": verifier}
        if self.sandboxes.made:
            named["sandbox"] = self.sandboxes.choice
        return description | {
            "multi_turn": callable(getattr(environment, "reply", None)),
            "has_gold": callable(getattr(environment, "gold", None)),
            "verifier": verifier.use if verifier else self._verifier_class,
            "checks_golds": "check_gold" in self._judge.members,
            "notes": [values.text(note, "a note") for note in getattr(environment, "notes", ())],
            "params": {kind: self._params(kind, choice) for kind, choice in named.items()},
            "plugins": [self._record(kind, choice.use) for kind, choice in named.items()],
            "distributions": {
                found.metadata["Name"]: found.version for found in metadata.distributions()
            },
            "api": API_VERSION,
            "prime_core": __version__,
            "python": platform.python_version(),
            "ids_checked": self._check_ids(),
        }

    def _params(self, kind: str, choice: PluginChoice) -> Any:
        # mode "json" writes a SecretStr as stars.
        return self._hub.params(kind, choice).model_dump(mode="json", by_alias=True)

    def _record(self, kind: str, name: str) -> dict[str, str]:
        record = self._hub.find(kind, name)
        return {
            "kind": kind,
            "name": name,
            "distribution": record.distribution,
            "version": record.version,
        }

    def _check_ids(self) -> int:
        count = len(self._tasks)
        stride = max(1, -(-count // IDS_CHECKED))
        seen: dict[str, int] = {}
        for index in range(0, count, stride):
            task = self._tasks[index]
            first = seen.setdefault(task.id, index)
            if first != index:
                raise FormatError(f"tasks {first} and {index} have the same id {task.id!r}")
        return len(seen)

    def _find(self, task_id: str) -> int | None:
        if self._indices is None:
            self._indices = {task.id: index for index, task in enumerate(self._tasks)}
        return self._indices.get(task_id)

    def _render(self, item: Any) -> Any:
        index, instruction = item
        rendered = self._environment.render(self._tasks[index], wire.read_instruction(instruction))
        return wire.messages_json(rendered, "rendered messages")

    def _score(self, item: Any) -> Any:
        index, completion = item
        return self._judge.score(self._tasks[index], wire.read_completion(completion))

    def _reward_group(self, item: Any) -> Any:
        assert self._reward is not None  # the pool asks only where it configured one
        index, rollouts, length_budget, step = item
        group = ScoredGroup(
            self._tasks[index],
            values.sequence(rollouts, "rollouts", wire.read_rollout),
            length_budget,
            step,
        )
        rewards = list(self._reward.reward(group))
        if len(rewards) != len(group.rollouts):
            raise FormatError(f"{len(rewards)} rewards for {len(group.rollouts)} rollouts")
        return [wire.reward_json(reward) for reward in rewards]

    def _reply(self, item: Any) -> Any:
        index, prompt, messages, turn = item
        state = TurnState(
            self._tasks[index],
            wire.read_messages(prompt, "prompt"),
            wire.read_messages(messages, "messages"),
            turn,
        )
        return wire.reply_json(self._environment.reply(state))

    def _wrong(self, item: Any) -> Any:
        index, seed = item
        return values.text(self._environment.wrong(self._tasks[index], HashRng(seed)), "wrong")


def _log_phase(phase: str) -> None:
    """So that the log of a host that dies or hangs at its start ends with where it was."""
    sys.stderr.write(f"prime-core host: {phase}\n")
