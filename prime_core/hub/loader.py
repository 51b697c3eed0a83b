"""Imports one plugin module, registers it with pluggy once, and reads the specs it returns.

Called by `Hub` alone. Whatever a module does when it's imported or registered becomes a
`PluginError` of that module; a module that fails stays out, and the others are untouched.
"""

from __future__ import annotations

import difflib
import importlib
import inspect
from collections.abc import Sequence
from dataclasses import dataclass

import pluggy

from prime_core.api import PluginError, Spec, hookspecs
from prime_core.hub.declaration import check_spec, hold_to_declaration
from prime_core.hub.kinds import KINDS, NOTIFICATIONS
from prime_core.hub.records import PluginRecord
from prime_core.hub.refusal import DOCTOR, describe, one_line, refusal


@dataclass(frozen=True, slots=True)
class LoadedModule:
    """A registered module: its specs by (kind, name), and the notification hooks it implements."""

    module: str
    plugin_name: str
    specs: dict[tuple[str, str], Spec]
    notifications: tuple[str, ...]


class Loader:
    """The pluggy manager of one process, behind types."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager(hookspecs.PROJECT)
        self._manager.add_hookspecs(hookspecs)
        self._loaded: dict[str, LoadedModule] = {}
        self._owners: dict[str, str] = {}

    def load(self, record: PluginRecord, siblings: Sequence[PluginRecord]) -> LoadedModule:
        """Import and register the record's module, unless that has been done.

        Args:
            record: the plugin that is wanted; errors name it.
            siblings: every record of the same distribution, `record` included.

        Raises:
            PluginError: of phase imported or registered.
        """
        owner = self._owners.get(record.module)
        if owner is not None and owner != record.distribution:
            raise refusal(
                record,
                "registered",
                f"its module {record.module} is already registered by {owner}",
                fix=f"let one of {owner} and {record.distribution} declare the module",
            )
        if record.module in self._loaded:
            return self._loaded[record.module]
        module = self.import_module(record)
        modules = {sibling.module for sibling in siblings}
        name = (
            record.distribution if len(modules) == 1 else f"{record.distribution}:{record.module}"
        )
        self._register(record, module, name)
        try:
            declared = [each for each in siblings if each.module == record.module]
            loaded = self._read(record, name, declared)
        except PluginError:
            self._manager.unregister(name=name)
            raise
        self._loaded[record.module] = loaded
        self._owners[record.module] = record.distribution
        return loaded

    def call(self, plugin_name: str, hook: str, arguments: dict[str, object]) -> None:
        """Call one notification hook of one registered module; its exceptions come through."""
        self._caller(plugin_name, hook)(**arguments)

    def _caller(self, plugin_name: str, hook: str) -> pluggy.HookCaller:
        """A caller that reaches the implementations of one module only."""
        others = [
            plugin for name, plugin in self._manager.list_name_plugin() if name != plugin_name
        ]
        return self._manager.subset_hook_caller(hook, remove_plugins=others)

    def import_module(self, record: PluginRecord) -> object:
        """Import the record's module; whatever that raises is a PluginError of phase imported."""
        try:
            return importlib.import_module(record.module)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # sys.exit() at import must not end us
            raise refusal(
                record,
                "imported",
                f"importing {record.module} raised {describe(error)}",
                fix=_import_fix(record, error),
            ) from error

    def _register(self, record: PluginRecord, module: object, name: str) -> None:
        try:
            self._manager.register(module, name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            unknown = self._unknown_hooks(module)
            if self._manager.has_plugin(name):
                self._manager.unregister(name=name)
            if unknown:
                raise refusal(record, "registered", *_misspelt(record, unknown[0])) from error
            raise refusal(
                record, "registered", one_line(str(error)), fix=_arguments_fix(str(error))
            ) from error
        except Exception as error:  # a module attribute may raise when pluggy looks at it
            raise refusal(
                record, "registered", f"registering {record.module} raised {describe(error)}"
            ) from error

    def _unknown_hooks(self, module: object) -> list[str]:
        callers = self._manager.get_hookcallers(module) or []
        return [caller.name for caller in callers if not caller.has_spec()]

    def _read(
        self, record: PluginRecord, plugin_name: str, declared: Sequence[PluginRecord]
    ) -> LoadedModule:
        """Call the module's registration hooks and hold the answer against its entry points."""
        plugin = self._manager.get_plugin(plugin_name)
        implemented = [caller.name for caller in self._manager.get_hookcallers(plugin) or []]
        for hook in implemented:
            if any(
                inspect.iscoroutinefunction(implementation.function)
                for implementation in self._caller(plugin_name, hook).get_hookimpls()
            ):
                raise refusal(
                    record,
                    "registered",
                    f"{hook} is async; hooks are called, never awaited",
                    fix=f"make {hook} a plain function of {record.module}",
                )
        specs: dict[tuple[str, str], Spec] = {}
        for kind in KINDS.values():
            if kind.hook in implemented:
                for spec in self._answers(record, plugin_name, kind.hook, kind.spec):
                    key = (kind.name, spec.name)
                    if key in specs:
                        raise refusal(
                            record, "registered", f"{kind.hook} returns {spec.name!r} twice"
                        )
                    specs[key] = spec
        notifications = tuple(hook for hook in NOTIFICATIONS if hook in implemented)
        hold_to_declaration(record, set(specs), bool(notifications), declared)
        for key, spec in specs.items():
            check_spec(record, f"{key[0]}.{key[1]}", spec)
        return LoadedModule(record.module, plugin_name, specs, notifications)

    def _answers(
        self, record: PluginRecord, plugin_name: str, hook: str, expected: type[Spec]
    ) -> list[Spec]:
        try:
            answers = self._caller(plugin_name, hook)()
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as at import
            raise refusal(record, "registered", f"{hook} raised {describe(error)}") from error
        specs: list[Spec] = []
        for answer in answers:
            if not isinstance(answer, list | tuple):
                raise refusal(
                    record,
                    "registered",
                    f"{hook} returned {type(answer).__name__}, not a list",
                    fix=f"return a list of {expected.__name__}",
                )
            for spec in answer:
                if not isinstance(spec, expected):
                    raise refusal(
                        record,
                        "registered",
                        f"{hook} returned a {type(spec).__name__} in its list",
                        fix=f"return a list of {expected.__name__}",
                    )
                specs.append(spec)
        return specs


def _import_fix(record: PluginRecord, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        if f"{record.module}.".startswith(f"{error.name}."):
            return f"reinstall it: pip install --force-reinstall {record.distribution}"
        return (
            f"install what provides module {error.name}, or reinstall {record.distribution}; "
            "then run `prime-core plugins doctor`"
        )
    return f"see its traceback: python -c 'import {record.module}'; {DOCTOR}"


def _misspelt(record: PluginRecord, hook: str) -> tuple[str, str]:
    names = [*(kind.hook for kind in KINDS.values() if kind.hook), *NOTIFICATIONS]
    near = difflib.get_close_matches(hook, names, n=1, cutoff=0.5)
    fix = f"rename it to {near[0]}" if near else f"use one of {', '.join(names)}"
    return f"{record.module} implements {hook}, which is not a hook", fix


def _arguments_fix(text: str) -> str:
    for hook in NOTIFICATIONS:
        if f"hook {hook!r}" in text:
            signature = inspect.signature(getattr(hookspecs, hook))
            return f"take arguments of {hook}{signature}, by name; it may take fewer"
    return DOCTOR
