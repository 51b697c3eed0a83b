"""A run config with its plugins checked: what `train` and every command that starts a run load.

Plugins of the engine's process are imported one by one, and their parameters validated here. Those
of environment hosts (environments, verifiers, rewards) are looked up in metadata, and imported in
a short-lived process of their own, because their code never enters the engine's.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from prime_core.api.errors import PluginError, RunError
from prime_core.api.specs import InferenceEngineSpec
from prime_core.config.document import Document, read
from prime_core.config.load import LoadedConfig, validate
from prime_core.config.locate import KeyPath
from prime_core.config.params import PluginReport, check_params
from prime_core.config.problems import Fault
from prime_core.config.sections import RunConfig
from prime_core.hub import Hub
from prime_core.hub.kinds import HOSTED_KINDS, OBSERVER
from prime_core.hub.selection import Selection, selections
from prime_core.run.hosted_params import check_hosted
from prime_core.run.publications import unpublished


def load_run_config(
    path: Path, overrides: Sequence[str] = (), *, check_files: bool = True
) -> LoadedConfig:
    """Load a run config and check every plugin it chooses, except under other interpreters.

    Raises:
        ConfigError: with everything that is wrong, plugins included.
    """
    document = read(path, overrides)
    return validate(
        document,
        plugin_checker=lambda config: check_plugins(
            config, _block(document), check_files=check_files
        ),
        check_files=check_files,
    )


def _block(document: Document) -> list[str]:
    """`plugins.block` as it stands, as the rest of the config may not validate."""
    section = document.data.get("plugins")
    names = section.get("block") if isinstance(section, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def check_plugins(
    config: RunConfig, block: Sequence[str], *, check_files: bool = True
) -> list[PluginReport]:
    """One report for each plugin choice of a config, the files of data sets included."""
    try:
        hub = Hub.discover(block)
    except PluginError as error:
        fault = Fault((), error.what, error.fix or "correct plugins.block")
        return [PluginReport(("plugins", "block"), (fault,), False)]
    reports: list[PluginReport] = []
    hosted: list[tuple[KeyPath, Selection]] = []
    for selection in selections(config):
        path = _key_path(selection.where)
        if selection.kind in HOSTED_KINDS:
            if selection.python is not None:
                continue  # checked by the host's `describe`
            try:
                hub.find(selection.kind, selection.choice.use, selection.choice.version)
            except PluginError as error:
                reports.append(_unusable(path, error))
            else:
                hosted.append((path, selection))
        else:
            reports.append(report(hub, path, selection))
    published = [_unpublished(*each) for each in unpublished(hub, config)]
    return [*reports, *check_hosted(hosted, block, check_files=check_files), *published]


def report(hub: Hub, path: KeyPath, selection: Selection) -> PluginReport:
    choice = selection.choice
    try:
        if selection.kind == OBSERVER:
            hub.find(OBSERVER, choice.use)
            return PluginReport(path, (), True)
        spec = hub.spec(selection.kind, choice.use, choice.version)
    except PluginError as error:
        return _unusable(path, error)
    faults = check_params(spec.params, choice.params, (*path, "with"))
    if isinstance(spec, InferenceEngineSpec) and spec.untrainable:
        what = f"engine {spec.name} can't be trained with: {spec.untrainable}"
        fix = 'set engine.use = "transformers"; measure this one with `prime-core eval`'
        faults = (Fault(("use",), what, fix), *faults)
    return PluginReport(path, faults, True)


def _unusable(path: KeyPath, error: PluginError) -> PluginReport:
    what = error.what if error.phase == "found" else f"{error.where}: {error.what}"
    key: KeyPath = () if isinstance(path[-1], int) and path[0] == "plugins" else ("use",)
    fix = error.fix or "run `prime-core plugins doctor`"
    return PluginReport(path, (Fault(key, what, fix),), False)


def _unpublished(where: str, error: PluginError | RunError) -> PluginReport:
    path = _key_path(where)
    if isinstance(error, PluginError):
        return _unusable(path, error)
    fault = Fault(("python",), error.what, error.fix or "check the interpreter")
    return PluginReport(path, (fault,), False)


def _key_path(where: str) -> KeyPath:
    return tuple(int(part) if part.isdigit() else part for part in where.split("."))
