"""An empty hub for tests, and plugins that exist in memory only.

The fixtures `isolated_hub` and `make_plugin` of the pytest plugin hand these out. A fake plugin
goes the whole way of a real one: its module is imported and registered when it's selected.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from prime_core.api import PluginError, Spec, hookimpl
from prime_core.hub import records
from prime_core.hub.hub import Hub
from prime_core.hub.kinds import KINDS, OBSERVER
from prime_core.hub.records import PluginRecord

if TYPE_CHECKING:
    import pytest


def isolate(monkeypatch: pytest.MonkeyPatch) -> Hub:
    """An empty hub; until the test ends, `Hub.discover` raises instead of reading metadata."""

    def refuse() -> list[PluginRecord]:
        raise PluginError(
            "a test with an isolated hub looked for installed plugins",
            plugin="(any)",
            distribution=None,
            phase="found",
            fix="hand the fixture isolated_hub to the code under test, or drop the fixture",
        )

    monkeypatch.setattr(records, "scan", refuse)
    return Hub([])


@dataclass(frozen=True, slots=True)
class FakePlugin:
    """What `make_plugin` made: the distribution's name, the module, its records."""

    distribution: str
    module: ModuleType
    records: tuple[PluginRecord, ...]


class PluginMaker:
    """Makes in-memory plugins for a hub; their modules leave sys.modules when it's closed."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._made: list[str] = []

    def __enter__(self) -> PluginMaker:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for name in self._made:
            sys.modules.pop(name, None)

    def __call__(
        self,
        *specs: Spec,
        hooks: Mapping[str, Callable[..., Any]] | None = None,
        declares: Sequence[str] | None = None,
        observer: str | None = None,
        distribution: str | None = None,
        version: str = "1.0",
        requires: str | None = "",
    ) -> FakePlugin:
        """Add one distribution with one module to the hub.

        Args:
            specs: what its registration hooks return, each from the hook of its kind.
            hooks: hook name to callable, for notification hooks and for hooks that misbehave; they
                win over `specs`.
            declares: entry-point names; default is what `specs` and `observer` imply.
            observer: declares observer.<this>.
            distribution: its name; default is unique in this test.
            version: its version.
            requires: specifier of its requirement on prime-core; None states no requirement.
        """
        number = len(self._made)
        owner = distribution or f"fake-plugin-{number}"
        module = ModuleType(f"_prime_core_fake_plugin_{id(self)}_{number}")
        for name, function in {**_registration_hooks(specs), **(hooks or {})}.items():
            setattr(module, name, hookimpl(function))
        if declares is None:
            declares = [f"{spec.kind}.{spec.name}" for spec in specs]
            declares += [f"{OBSERVER}.{observer}"] if observer else []
        sys.modules[module.__name__] = module
        self._made.append(module.__name__)
        made = []
        for entry in declares:
            kind, _, name = entry.partition(".")
            made.append(
                PluginRecord(
                    kind=kind,
                    name=name,
                    module=module.__name__,
                    distribution=owner,
                    version=version,
                    api_requirement=requires,
                    summary="made in memory by a test",
                )
            )
        self._hub.add(made)
        return FakePlugin(owner, module, tuple(made))


def _registration_hooks(specs: Sequence[Spec]) -> dict[str, Callable[[], list[Spec]]]:
    """One hook per kind that occurs, returning its specs."""

    def returning(kind: str) -> Callable[[], list[Spec]]:
        return lambda: [spec for spec in specs if spec.kind == kind]

    return {KINDS[kind].hook: returning(kind) for kind in {spec.kind for spec in specs}}
