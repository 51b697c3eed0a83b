"""The experiments of a check, each done once: imports observed, tasks listed, hosts opened.

Rules reach it through their subject. Invariant: everything of the distribution that runs, runs in a
jailed child of the launcher; two rules that need the same experiment share it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from prime_core.api import FormatError, HostError
from prime_core.check import synthetic
from prime_core.check.bench import Bench
from prime_core.check.configured import request
from prime_core.check.distribution import Distribution
from prime_core.check.launching import Launcher
from prime_core.check.limits import Limits
from prime_core.check.listing import beside
from prime_core.check.measures import (
    Listing,
    Observation,
    TaskView,
    read_listing,
    read_observation,
    read_result,
)
from prime_core.check.scorers import open_bench
from prime_core.check.subject import Blocked, Subject
from prime_core.hub import KINDS

T = TypeVar("T")


class Lab:
    """Runs a distribution's code, in jails.

    Args:
        names_taken: entries for `block`, so that another distribution's plugins of the same names
            don't stand in the way.
    """

    def __init__(
        self,
        distribution: Distribution,
        scratch: Path,
        launcher: Launcher,
        limits: Limits,
        names_taken: tuple[str, ...] = (),
    ) -> None:
        self.distribution = distribution
        self.limits = limits
        self.launcher = launcher
        self._scratch = scratch
        self._cache = launcher.inside / "home" / ".cache" / "prime-core"
        self._block = names_taken
        self._known: dict[object, asyncio.Task[Any]] = {}
        self._open = AsyncExitStack()
        self._broken: dict[str, tuple[Path, str]] = {}
        self._files = 0

    async def close(self) -> None:
        """End every process."""
        for task in self._known.values():
            task.cancel()
        await asyncio.gather(*self._known.values(), return_exceptions=True)
        await self._open.aclose()

    async def _once(self, key: object, make: Callable[[], Awaitable[T]]) -> T:
        if key not in self._known:

            async def run() -> T:
                return await make()

            self._known[key] = asyncio.create_task(run())
        # Shielded: a rule that runs out of time must not take the experiment from the others.
        found: T = await asyncio.shield(self._known[key])
        return found

    async def child(
        self, module: str, request: Mapping[str, Any], limit_s: float, python: Path | None = None
    ) -> tuple[Path, Path, str]:
        """Run a module of ours in a jail; (its result, a second file, how it ended badly).

        Args:
            python: of an environment that sees neither the unpacked wheel nor anything else here.
        """
        self._files += 1
        stem = f"{module}-{self._files}"
        asked = self._scratch / f"{stem}.ask.json"  # where no child can have put a link
        result, second = (self.launcher.inside / f"{stem}{end}" for end in (".json", ".jsonl"))
        asked.write_text(json.dumps(request), encoding="utf-8")
        arguments = ["-P", "-m", f"prime_core.check.{module}", *map(str, (asked, result, second))]
        ended = await self.launcher.run(arguments, limit_s, python=python)
        good = ended.code == 0 and not ended.timed_out
        return result, second, "" if good else ended.how

    # --- experiments ------------------------------------------------------------------------------

    async def _registered(self, subject: Subject) -> None:
        """The plugin can be made, as far as its registration and its parameters tell."""
        assert subject.entry is not None
        seen = (await self.observation()).plugins.get(subject.entry.label)
        if seen is None or seen.get("error"):
            raise Blocked("it can't be imported or registered (I01)")
        parameters = seen.get("parameters") or {}
        if parameters.get("schema_error") or parameters.get("default_error"):
            raise Blocked("its parameters are refused (I10)")
        if any(parameters.get("case_errors", ())):
            raise Blocked("its parameters are refused (I10)")

    def runnable(self) -> None:
        """It has plugins in a wheel that may be used.

        Raises:
            Blocked: it hasn't.
        """
        found = self.distribution
        if not found.entries:
            raise Blocked("it has no entry point of group prime_core (P04)")
        if found.site is None:
            raise Blocked(f"there is no wheel: {found.build_error}")
        if found.foreign_modules:
            raise Blocked(f"its wheel holds {found.foreign_modules[0]}, which isn't its module")
        if found.in_the_way:
            raise Blocked(f"its module's name is {found.in_the_way} (P07)")

    async def observation(self) -> Observation:
        """What importing and registering does; see `Observation`.

        Raises:
            Blocked: there is nothing that could be imported.
        """
        self.runnable()
        return await self._once("observation", self._observe)

    async def _observe(self) -> Observation:
        checks = self.distribution.checks
        request = {
            "modules": self.distribution.modules,
            "block": self._block,
            "plugins": [
                {
                    "kind": entry.kind,
                    "name": entry.name,
                    "label": entry.label,
                    "with": [case.params for case in checks.for_plugin(entry.label)],
                }
                for entry in self.distribution.entries
                if entry.kind in KINDS
            ],
        }
        result, _, ended = await self.child("observe", request, self.limits.start_s)
        try:
            return read_observation(result, ended)
        except FormatError as error:
            return Observation(ended=ended or error.what, at="being started")

    async def listing(
        self, subject: Subject, *, params: Mapping[str, Any] | None = None
    ) -> Listing:
        """The tasks of an environment (or the made ones of a verifier); see `Listing`.

        Args:
            params: parameters on top of the subject's own.

        Raises:
            Blocked: there is nothing to run.
        """
        await self._registered(subject)
        if subject.kind == "verifier":
            assert subject.case is not None
            return synthetic.listing(subject.case)
        key = ("listing", subject.key(), _frozen(params))
        return await self._once(key, lambda: self._list(subject, params))

    async def _list(self, subject: Subject, params: Mapping[str, Any] | None) -> Listing:
        asked = {
            **self.request(subject, params),
            "cap": self.limits.listed,
            "sample": self.limits.sample,
            "wrong_seeds": self.limits.wrong_seeds,
            "again": not params,
        }
        result, tasks, ended = await self.child("listing", asked, self.limits.start_s)
        if not params:
            self._broken[subject.key()] = beside(result), ended
        try:
            return read_listing(result, tasks)
        except (FormatError, OSError) as error:
            return Listing("being made", ended or str(error))

    async def broken(self, subject: Subject) -> dict[str, Any]:
        """How tasks without their data were judged; see `prime_core.check.broken`.

        Raises:
            Blocked: nobody knows.
        """
        await self.ready(subject)
        path, ended = self._broken[subject.key()]
        try:
            found = read_result(path)
        except FormatError as error:
            raise Blocked(ended or error.what) from error
        if found["error"]:
            raise Blocked(str(found["error"]))
        return found

    def request(self, subject: Subject, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a child needs to make the subject's plugin."""
        return request(subject, self._block, self._cache, params)

    async def ready(self, subject: Subject) -> Listing:
        """The listing, where it could be made.

        Raises:
            Blocked: the environment can't be made or listed, which rule I11 reports.
        """
        found = await self.listing(subject)
        if found.error or found.info is None or not found.count:
            raise Blocked(f"it has no tasks to look at: {found.error or 'the list is empty'}")
        return found

    async def sample(self, subject: Subject) -> tuple[Listing, list[TaskView], Bench]:
        """The listing, the sampled tasks that answered, and a bench to score on.

        Raises:
            Blocked: one of them isn't there.
        """
        listing = await self.ready(subject)
        views = [view for view in listing.sample if not view.error]
        if not views:
            raise Blocked(f"no task could be rendered: {listing.sample[0].error}")
        return listing, views, await self.bench(subject)

    async def bench(self, subject: Subject, variables: Mapping[str, str] | None = None) -> Bench:
        """Hosts to score on.

        Args:
            variables: environment variables that differ from a plain host's.

        Raises:
            Blocked: no host can be started.
        """
        await self._registered(subject)
        key = ("bench", subject.key(), _frozen(variables))
        try:
            return await self._once(key, lambda: self._open_bench(subject, variables))
        except HostError as error:
            raise Blocked(f"no host can be started: {error.what.splitlines()[0]}") from error

    async def _open_bench(self, subject: Subject, variables: Mapping[str, str] | None) -> Bench:
        made = await open_bench(
            subject,
            self.limits,
            python=self.launcher.interpreter(variables),
            cache_dir=self._cache,
            log_dir=self._scratch / "logs",
            block=self._block,
        )
        self._open.push_async_callback(made.close)
        return made


def _frozen(values: Mapping[str, Any] | None) -> str:
    return json.dumps(dict(values or {}), sort_keys=True)
