"""`VerifierPool`: one verifier in hosts, for cases that belong to no environment.

`prime-core verify` and benchmarks open one. Invariant: as for `HostPool`, a verifier that crashes,
hangs or answers nonsense gives the status error, never a value, and the caller goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prime_core.api.types import Completion, GoldReport, Score, Task
from prime_core.config.sections import HostingSection, PluginChoice
from prime_core.hosting import values, wire
from prime_core.hosting.channel import Failure
from prime_core.hosting.hosts import Hosts
from prime_core.hosting.pool import error_score
from prime_core.hosting.settings import verifier_settings

Case = tuple[Task, Completion]


@dataclass(frozen=True, slots=True)
class VerifierDescription:
    """A verifier in its hosts.

    Attributes:
        name: of the plugin.
        members: the optional members that it has: from_case, explain, check_gold, second_opinion.
        params: validated parameters; secrets are stars.
        distribution, version: where it comes from in the hosts' interpreter.
    """

    name: str
    members: tuple[str, ...]
    params: Mapping[str, Any]
    distribution: str
    version: str


@dataclass(frozen=True, slots=True)
class TimedScore:
    """A score, and the CPU seconds that the host measured; None where the host was lost."""

    score: Score
    cpu_seconds: float | None


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a second grader says: a value, or None with the reason where it failed ("" if it just
    has none)."""

    value: float | None
    failure: str = ""


class VerifierPool(Hosts):
    """Hosts of one verifier. Made by `open` and used within one event loop."""

    same = ("verifier",)
    description: VerifierDescription

    @classmethod
    async def open(
        cls,
        verifier: PluginChoice,
        hosting: HostingSection,
        *,
        cache_dir: Path,
        python: Path | None = None,
        log_dir: Path | None = None,
    ) -> VerifierPool:
        """Start the first host; the others start with work.

        Args:
            verifier: the plugin and its parameters.
            hosting: how many hosts, and their limits.
            cache_dir: where plugins keep what they download.
            python: the hosts' interpreter; None for this one.
            log_dir: where hosts log; default is a directory that is removed.

        Raises:
            HostError: the verifier can't be made; says in which phase, and shows the log's end.
        """
        settings = verifier_settings(verifier, python, hosting, cache_dir)
        return await cls(settings, hosting, None, log_dir)._opened()

    def _read_description(self, described: dict[str, Any]) -> None:
        self.description = VerifierDescription(
            name=values.text(described.get("verifier"), "description.verifier"),
            members=values.sequence(described.get("members"), "description.members", values.text),
            params=values.mapping(described.get("params"), "description.params"),
            distribution=values.text(described.get("distribution"), "description.distribution"),
            version=values.text(described.get("version"), "description.version"),
        )

    async def cases(self, rows: Sequence[Mapping[str, Any]]) -> list[Case | str]:
        """Each row of a case file as (task, completion), or the reason why it isn't one.

        Raises:
            HostError: no host can be started any more, or the pool was closed.
        """

        def read(value: object) -> Case:
            task, completion = values.sequence(value, "case", lambda item, what: item)
            return wire.read_task(task), wire.read_completion(completion)

        found = await self._outcomes("case", [dict(row) for row in rows], read)
        return [each.detail if isinstance(each, Failure) else each for each in found]

    async def verify(self, cases: Sequence[Case]) -> list[TimedScore]:
        """Scores of (task, completion), in order, each with its CPU seconds.

        A verifier that fails twice gives `Score(None, "error")` with kind and detail as evidence.

        Raises:
            HostError: no host can be started any more, or the pool was closed.
        """

        def read(value: object) -> TimedScore:
            found = values.mapping(value, "timed score")
            seconds = values.number(found.get("cpu_seconds"), "cpu_seconds")
            return TimedScore(wire.read_score(found.get("score")), seconds)

        found = await self._outcomes("verify", [_sent(case) for case in cases], read)
        return [
            TimedScore(error_score(each), None) if isinstance(each, Failure) else each
            for each in found
        ]

    async def explain(self, gold: str, text: str) -> dict[str, Any]:
        """What the verifier says of one completion against a gold answer, by name.

        Raises:
            HostError: it has no `explain`, or failed twice.
        """

        def read(value: object) -> dict[str, Any]:
            return values.mapping(value, "explanation")

        return (await self._call("explain", [[gold, text]], read))[0]

    async def check_golds(self, golds: Sequence[str]) -> list[GoldReport]:
        """Whether each gold answer can be judged by.

        Raises:
            HostError: the verifier has no `check_gold`, or failed twice.
        """
        return await self._call("check_gold", list(golds), wire.read_gold_report)

    async def second_opinions(self, cases: Sequence[Case]) -> list[Opinion]:
        """What the verifier's second grader says of each (task, completion).

        Raises:
            HostError: no host can be started any more, or the pool was closed.
        """

        def read(value: object) -> Opinion:
            return Opinion(None if value is None else values.number(value, "second opinion"))

        found = await self._outcomes("second_opinion", [_sent(case) for case in cases], read)
        return [
            Opinion(None, f"{each.kind}: {each.detail}") if isinstance(each, Failure) else each
            for each in found
        ]


def _sent(case: Case) -> list[Any]:
    task, completion = case
    return [wire.task_json(task), wire.completion_json(completion)]
