"""A verifier alone inside a host, for cases that belong to no environment.

Made by the host's loop where the first message names no environment; `prime-core verify` is behind
it. Invariant: as in hosts of environments, a plugin's value leaves here checked.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from prime_core import __version__
from prime_core.api.protocols import Verifier
from prime_core.api.specs import API_VERSION
from prime_core.config.sections import PluginChoice
from prime_core.hosting.judging import Judge
from prime_core.hosting.sandboxing import host_sandboxes
from prime_core.hub import Hub, RunContext


class HostedVerifier:
    """A verifier that the hub of this interpreter made."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        self._hub = Hub.discover(block=tuple(request["block"]))
        self.sandboxes = host_sandboxes(self._hub, request)
        context = RunContext(
            run_dir=None,
            cache_dir=Path(request["cache_dir"]),
            offline=bool(request["offline"]),
            sandboxes=self.sandboxes,
        )
        self._choice = PluginChoice.model_validate(request["verifier"])
        made = self._hub.make("verifier", self._choice, context)
        assert isinstance(made, Verifier)
        self._judge = Judge(made)
        self.calls: dict[str, Callable[[Any], Any]] = {
            "case": self._judge.case,
            "verify": self._judge.verify,
            "explain": self._judge.explain,
            "check_gold": self._judge.check_gold,
            "second_opinion": self._judge.second_opinion,
        }

    def describe(self, full: bool) -> dict[str, Any]:
        """What the pool knows of this verifier; `full` adds the costly parts."""
        description: dict[str, Any] = {"verifier": self._choice.use}
        if not full:
            return description
        record = self._hub.find("verifier", self._choice.use)
        params = self._hub.params("verifier", self._choice)
        return description | {
            "members": self._judge.members,
            "params": params.model_dump(mode="json", by_alias=True),
            "distribution": record.distribution,
            "version": record.version,
            "distributions": {
                found.metadata["Name"]: found.version for found in metadata.distributions()
            },
            "api": API_VERSION,
            "prime_core": __version__,
            "python": platform.python_version(),
        }
