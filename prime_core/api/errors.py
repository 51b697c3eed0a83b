"""The exception tree of prime-core.

Every error a user can meet is a `PrimeError`: it says what went wrong, where, and what to do next.
Programmer mistakes stay assertions and plain Python exceptions; nothing here is ever swallowed.
"""

from __future__ import annotations

from collections.abc import Sequence


class PrimeError(Exception):
    """An error for the person at the keyboard.

    Args:
        what: one sentence, what went wrong.
        where: file:line, plugin and distribution, object path or row; None where there is no place.
        fix: what to do next, as an imperative; None only where nothing can be said.
    """

    def __init__(self, what: str, *, where: str | None = None, fix: str | None = None) -> None:
        self.what = what
        self.where = where
        self.fix = fix
        super().__init__(what, where, fix)

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n  fix: {self.fix}" if self.fix else text


class ConfigError(PrimeError):
    """A run config that can't be used; carries every problem found, not only the first."""

    def __init__(self, problems: Sequence[PrimeError], *, source: str = "run config") -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        super().__init__(f"{count} problem{'s' if count != 1 else ''} in {source}")

    def __str__(self) -> str:
        return "\n".join([self.what, *(f"- {problem}" for problem in self.problems)])


class PluginError(PrimeError):
    """A plugin that can't be found, imported, registered, configured or that failed at work.

    `phase` is one of found, imported, registered, configured, working.
    """

    def __init__(
        self,
        what: str,
        *,
        plugin: str,
        distribution: str | None,
        phase: str,
        fix: str | None = None,
    ) -> None:
        self.plugin = plugin
        self.distribution = distribution
        self.phase = phase
        owner = f" ({distribution})" if distribution else ""
        super().__init__(what, where=f"plugin {plugin}{owner}, {phase}", fix=fix)


class DatasetError(PrimeError):
    """A data set that can't be read: missing, another digest, or rows that break the schema."""


class FormatError(PrimeError):
    """Bytes of a file or message that break its format; the only error a strict reader raises."""


class IntegrityError(PrimeError):
    """Bytes whose hash, size or signature isn't the expected one."""


class StoreError(PrimeError):
    """An object that is missing, exists already, or can't be written."""


class HostError(PrimeError):
    """An environment host that crashed, hung, exceeded a limit or answered nonsense.

    `kind` is one of crash, timeout, memory, protocol, exception, value.
    """

    def __init__(
        self, what: str, *, kind: str, where: str | None = None, fix: str | None = None
    ) -> None:
        self.kind = kind
        super().__init__(what, where=where, fix=fix)


class SandboxError(PrimeError):
    """A sandbox that can't launch or lost a jail; never the fault of the program in it."""


class EngineError(PrimeError):
    """An inference engine that can't load a policy or generate."""


class RunError(PrimeError):
    """A run directory or process that can't go on."""
