"""The one sandbox of an environment host: made when somebody first asks, held against a level.

Held by `RunContext`; the host asks it which processes are meant to stay. Invariant: a weaker
sandbox than was asked for is an error, never a substitute.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prime_core.api.errors import SandboxError
from prime_core.api.sandboxing import IsolationLevel, Sandbox

if TYPE_CHECKING:
    from prime_core.api.specs import Context
    from prime_core.config.sections import PluginChoice
    from prime_core.hub.hub import Hub

DEFAULT = "nsjail"  # the isolated default where `[hosting] sandbox` names none


class Sandboxes:
    """Makes the chosen sandbox, once.

    Args:
        hub: finds the plugin.
        choice: what `[hosting] sandbox` says, or None for the default.
    """

    def __init__(self, hub: Hub, choice: PluginChoice | None) -> None:
        from prime_core.config.sections import PluginChoice as Choice

        self._hub = hub
        self.choice = choice or Choice(use=DEFAULT)
        self._made: Sandbox | None = None

    def get(self, min_level: IsolationLevel, context: Context) -> Sandbox:
        """The sandbox, probed.

        Raises:
            SandboxError: it holds less than `min_level` on this host.
            PluginError: it can't be found or made.
        """
        if self._made is None:
            self._made = self._hub.make("sandbox", self.choice, context)
        found = self._made.probe()
        if not found.at_least(min_level):
            lacking = [f"{each.name}: {each.why}; {each.fix}" for each in found.missing]
            raise SandboxError(
                f"isolation {min_level!r} is asked for, and this host gives {found.level!r}"
                + "".join(f"\n  - {line}" for line in lacking),
                where=f"sandbox {self.choice.use}",
                fix="run `prime-core doctor sandbox`; it tells what this host needs",
            )
        return self._made

    @property
    def made(self) -> bool:
        """Whether somebody asked."""
        return self._made is not None

    def processes(self) -> frozenset[int]:
        """Ids of the launchers that stay between items."""
        return frozenset() if self._made is None else self._made.processes()

    def close(self) -> None:
        """Destroy every jail."""
        if self._made is not None:
            self._made.close()
