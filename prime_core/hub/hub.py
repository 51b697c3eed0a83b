"""The hub: which plugins there are, which one a choice means, and the objects they make.

Every process that uses plugins holds one; `discover` reads metadata, and the first call that needs
a plugin's code imports that one module. All errors are `PluginError`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol, overload

from prime_core.api import (
    AdvantageFunction,
    Context,
    Environment,
    GroupFilter,
    InferenceEngine,
    LengthBudget,
    Loss,
    PluginError,
    PrimeError,
    RewardFunction,
    Sandbox,
    SanityCheck,
    Spec,
    TaskFilter,
    Tracker,
    Verifier,
)
from prime_core.hub import params as parameters
from prime_core.hub import records as metadata
from prime_core.hub.blocking import Block
from prime_core.hub.finding import absent, check_version, duplicate
from prime_core.hub.kinds import KINDS, NOTIFICATIONS, OBSERVER
from prime_core.hub.loader import LoadedModule, Loader
from prime_core.hub.making import make
from prime_core.hub.observers import Observers
from prime_core.hub.records import PluginRecord, found_problem
from prime_core.hub.refusal import describe, refusal

if TYPE_CHECKING:
    from pydantic import BaseModel

    from prime_core.api import RewardedGroup
    from prime_core.config.sections import RunConfig
    from prime_core.hub.diagnosis import Diagnosis
    from prime_core.hub.selection import Selection

logger = logging.getLogger("prime_core.hub")


class Choice(Protocol):
    """What the hub reads of a `PluginChoice`: name, version specifier, parameters."""

    @property
    def use(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def params(self) -> dict[str, object]: ...


class Hub:
    """The plugins of one process.

    Args:
        records: the plugins there are, from metadata.
        block: what is kept out: KIND.NAME, KIND.NAME@DISTRIBUTION or a distribution's name.
    """

    def __init__(self, records: Iterable[PluginRecord], block: Sequence[str] = ()) -> None:
        self._records = list(records)
        self._blocks = [Block.parse(text) for text in block]
        self._loader = Loader()
        self._observers = Observers(self._loader)

    @classmethod
    def discover(cls, block: Sequence[str] = ()) -> Hub:
        """The hub of what is installed. Reads metadata, imports nothing.

        Raises:
            PluginError: an entry of `block` that can't mean anything.
        """
        hub = cls(metadata.scan(), block)
        for text in hub.idle_blocks():
            logger.warning("[plugins] block names %r, which no installed plugin matches", text)
        return hub

    def records(self) -> list[PluginRecord]:
        """Every plugin there is, blocked and unloadable ones included."""
        return list(self._records)

    def add(self, records: Iterable[PluginRecord]) -> None:
        """Add plugins that no metadata lists; `prime_core.testing` does."""
        self._records += records

    def blocked_by(self, record: PluginRecord) -> str | None:
        """The entry of `block` that keeps this plugin out, or None."""
        return next((block.text for block in self._blocks if block.matches(record)), None)

    @property
    def blocks(self) -> tuple[str, ...]:
        """The entries of `block`, as written."""
        return tuple(block.text for block in self._blocks)

    def idle_blocks(self) -> list[str]:
        """The entries of `block` that match nothing here."""
        return [
            block.text
            for block in self._blocks
            if not any(block.matches(record) for record in self._records)
        ]

    def candidates(self, kind: str, name: str) -> list[PluginRecord]:
        """The plugins that a run config may mean by this name: neither blocked nor shadowed."""
        return [
            record
            for record in self._records
            if (record.kind, record.name) == (kind, name)
            and not record.shadowed
            and self.blocked_by(record) is None
        ]

    def find(self, kind: str, name: str, version: str = "") -> PluginRecord:
        """The one plugin of this kind and name, from metadata alone.

        Args:
            version: specifier that the distribution's version must meet; "" for any.

        Raises:
            PluginError: of phase found: none, blocked, several, of another API, or of a version
                that the specifier refuses.
        """
        assert kind in KINDS, f"{kind!r} is not a kind of plugin"
        found = self.candidates(kind, name)
        if not found:
            raise absent(self, kind, name)
        if len(found) > 1:
            raise duplicate(found)
        record = found[0]
        self.check(record)
        check_version(record, version)
        return record

    def check(self, record: PluginRecord) -> None:
        """Hold a record against what metadata can tell: kind, module, API range.

        Raises:
            PluginError: of phase found.
        """
        problem = found_problem(record)
        if problem:
            raise refusal(record, "found", problem[0], fix=problem[1])

    def spec(self, kind: str, name: str, version: str = "") -> Spec:
        """The spec of a plugin; imports its module, and no other.

        Raises:
            PluginError: of phase found, imported or registered.
        """
        return self.spec_of(self.find(kind, name, version))

    def spec_of(self, record: PluginRecord) -> Spec:
        """The spec that a record's module registers under the record's name."""
        assert record.kind != OBSERVER, "an observer has no spec"
        return self.load(record).specs[record.kind, record.name]

    def load(self, record: PluginRecord) -> LoadedModule:
        """Import and register a record's module, once.

        Raises:
            PluginError: of phase imported or registered.
        """
        return self._loader.load(record, self._siblings(record))

    def import_module(self, record: PluginRecord) -> None:
        """Only import a record's module; the doctor's probe tells the phases apart with it."""
        self._loader.import_module(record)

    def params(self, kind: str, choice: Choice) -> BaseModel:
        """The validated parameters of a choice.

        Raises:
            PluginError: as `spec`, and of phase configured for unknown keys and bad values.
        """
        return self.validate(self.find(kind, choice.use, choice.version), choice.params)

    def validate(self, record: PluginRecord, values: Mapping[str, object]) -> BaseModel:
        """The validated parameters of a record's plugin; errors as `params`."""
        return parameters.validate(record, self.spec_of(record).params, values)

    @overload
    def make(
        self, kind: Literal["environment"], choice: Choice, context: Context
    ) -> Environment: ...
    @overload
    def make(self, kind: Literal["verifier"], choice: Choice, context: Context) -> Verifier: ...
    @overload
    def make(self, kind: Literal["reward"], choice: Choice, context: Context) -> RewardFunction: ...
    @overload
    def make(
        self, kind: Literal["length_budget"], choice: Choice, context: Context
    ) -> LengthBudget: ...
    @overload
    def make(
        self, kind: Literal["data_filter"], choice: Choice, context: Context
    ) -> TaskFilter | GroupFilter: ...
    @overload
    def make(
        self, kind: Literal["inference_engine"], choice: Choice, context: Context
    ) -> InferenceEngine: ...
    @overload
    def make(self, kind: Literal["sandbox"], choice: Choice, context: Context) -> Sandbox: ...
    @overload
    def make(
        self, kind: Literal["sanity_check"], choice: Choice, context: Context
    ) -> SanityCheck: ...
    @overload
    def make(self, kind: Literal["tracker"], choice: Choice, context: Context) -> Tracker: ...
    @overload
    def make(self, kind: Literal["loss"], choice: Choice, context: Context) -> Loss: ...
    @overload
    def make(
        self, kind: Literal["advantage"], choice: Choice, context: Context
    ) -> AdvantageFunction: ...
    @overload
    def make(self, kind: str, choice: Choice, context: Context) -> object: ...

    def make(self, kind: str, choice: Choice, context: Context) -> object:
        """The object that a choice's factory makes, checked against the kind's protocol.

        Raises:
            PluginError: as `params`, and of phase configured where the factory raises or what it
                makes lacks a member.
        """
        record = self.find(kind, choice.use, choice.version)
        return self.make_from(record, choice.params, context)

    def make_from(
        self, record: PluginRecord, values: Mapping[str, object], context: Context
    ) -> object:
        """As `make`, of a record that has been found already."""
        validated = self.validate(record, values)
        return make(record, self.spec_of(record), validated, context)

    @contextmanager
    def at_work(self, kind: str, name: str) -> Iterator[None]:
        """Turn what a plugin raises while it works into a `PluginError` of phase working.

        Errors of our own type pass unchanged: they already say what, where and what to do.
        """
        try:
            yield
        except PrimeError:
            raise
        except Exception as error:
            found = self.candidates(kind, name)
            owner = f"{found[0].distribution} {found[0].version}" if found else None
            raise PluginError(
                f"it raised {describe(error)}",
                plugin=f"{kind}.{name}",
                distribution=owner,
                phase="working",
                fix=f"report it to its authors; see `prime-core plugins show {kind}.{name}`",
            ) from error

    def load_observers(self, names: Sequence[str]) -> None:
        """Load the observers that `[plugins] observers` names, in order; each once.

        Raises:
            PluginError: of phase found, imported or registered.
        """
        for name in names:
            record = self.find(OBSERVER, name)
            self._observers.add(record, self.load(record))

    def start_observers(self, config: RunConfig) -> None:
        """Load the run's observers and tell them, in this process, that the run starts.

        Raises:
            PluginError: as `load_observers`.
        """
        self.load_observers(config.plugins.observers)
        if config.plugins.observers:
            self.run_started(config.model_dump(mode="json", by_alias=True))

    @property
    def observer_failures(self) -> dict[str, int]:
        """How often observers have failed, by distribution."""
        return dict(self._observers.failures)

    def run_started(self, config: Mapping[str, object]) -> int:
        """Tell the observers that a run starts or resumes; returns how many failed."""
        return self.notify("prime_run_started", config=config)

    def group_finished(self, group: RewardedGroup) -> int:
        """Tell the observers that the intake accepted or filtered a group; returns the failures."""
        return self.notify("prime_group_finished", group=group)

    def step_finished(self, step: int, metrics: Mapping[str, float]) -> int:
        """Tell the observers that the trainer finished a step; returns how many failed."""
        return self.notify("prime_step_finished", step=step, metrics=metrics)

    def notify(self, hook: str, **arguments: object) -> int:
        """Call a notification hook of every loaded observer, in the order they were loaded.

        What an observer raises is logged and counted in `observer_failures` under its
        distribution; it never reaches the caller. Returns how many observers failed.
        """
        assert hook in NOTIFICATIONS, f"{hook!r} is not a notification hook"
        return self._observers.notify(hook, arguments)

    def diagnose(self, selected: Sequence[Selection] | None = None) -> list[Diagnosis]:
        """What `prime-core plugins doctor` says: see `prime_core.hub.diagnosis.diagnose`."""
        from prime_core.hub.diagnosis import diagnose

        return diagnose(self, selected)

    def _siblings(self, record: PluginRecord) -> list[PluginRecord]:
        return [
            each
            for each in self._records
            if each.distribution == record.distribution and each.location == record.location
        ]
