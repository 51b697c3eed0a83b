"""Loads a run config: TOML and overrides in, a validated config with origins out.

Called by every command that takes a run config. Everything that is wrong comes in one ConfigError,
each problem with file:line and a fix, before anything heavy is imported (invariant 11).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

from pydantic import ValidationError

from prime_core.api.errors import ConfigError, PrimeError
from prime_core.config import files, rules, secrets
from prime_core.config.document import Document, Origin, read
from prime_core.config.locate import KeyPath, dotted
from prime_core.config.params import PluginReport
from prime_core.config.problems import faults
from prime_core.config.salvage import salvage, touches
from prime_core.config.sections import EnvironmentChoice, RunConfig
from prime_core.config.walk import choices, flatten

PluginChecker: TypeAlias = Callable[[RunConfig], Sequence[PluginReport]]


@dataclass(frozen=True)
class LoadedConfig:
    """A validated run config and where each of its values came from.

    Attributes:
        config: the config.
        origins: dotted key, e.g. `environments.0.with.digits`, of every value, defaults included.
        source: the file.
        checked: key paths of the plugin choices whose parameters were checked against their model.
    """

    config: RunConfig
    origins: Mapping[str, Origin]
    source: Path
    checked: frozenset[KeyPath] = frozenset()

    def absolute(self) -> LoadedConfig:
        """The same with paths that no longer depend on the directory a command runs in.

        Parameters of plugins stay as they are: only the plugin knows which of them are paths.
        """
        return replace(self, config=_absolute(self.config))


def _absolute(config: RunConfig) -> RunConfig:
    def environment(choice: EnvironmentChoice) -> EnvironmentChoice:
        # not resolved: a virtual environment's python is a link, and works by where it lies
        python = None if choice.python is None else choice.python.expanduser().absolute()
        return choice.model_copy(update={"python": python})

    profiles = config.filters.profiles
    model = config.model.path
    if not model.startswith(files.PACKAGE_PREFIX):
        model = str(Path(model).expanduser().absolute())
    run_dir = config.run.dir.expanduser().absolute()
    held = [environment(choice) for choice in config.eval.environments]
    return config.model_copy(
        update={
            "run": config.run.model_copy(update={"dir": run_dir}),
            "model": config.model.model_copy(update={"path": model}),
            "environments": [environment(choice) for choice in config.environments],
            "eval": config.eval.model_copy(update={"environments": held}),
            "filters": config.filters.model_copy(
                update={"profiles": None if profiles is None else profiles.expanduser().absolute()}
            ),
        }
    )


def load(
    path: Path,
    overrides: Sequence[str] = (),
    *,
    plugin_checker: PluginChecker | None = None,
    check_files: bool = True,
) -> LoadedConfig:
    """Load a run config.

    Args:
        path: a TOML file.
        overrides: `key=value` each; the key dotted, the value TOML or else a bare string.
        plugin_checker: looks up the chosen plugins and their parameters; without it nothing is
            known of them. `prime_core.run.configuration.load_run_config` brings the hub's.
        check_files: refuse files that the config names and that don't exist.

    Raises:
        ConfigError: with everything that is wrong.
    """
    return validate(read(path, overrides), plugin_checker=plugin_checker, check_files=check_files)


def validate(
    document: Document,
    *,
    plugin_checker: PluginChecker | None = None,
    check_files: bool = True,
) -> LoadedConfig:
    """Validate a document that `read` made; see `load`."""
    problems = list(document.problems)
    config, poisoned = _validated(document, problems)
    reports: Sequence[PluginReport] = ()
    if config is not None:
        clashes = rules.clashes(config)
        if check_files:
            clashes += files.missing(config)
        for clash in clashes:
            if not any(touches(key, poisoned) for key in clash.keys):
                where = _clash_place(document, clash.keys)
                problems.append(PrimeError(clash.what, where=where, fix=clash.fix))
        if plugin_checker is not None:
            reports = plugin_checker(config)
        problems += _plugin_problems(document, config, reports, poisoned)
    if problems:
        raise ConfigError(_in_order(problems), source=str(document.path))
    assert config is not None
    return LoadedConfig(
        config,
        {dotted(key): document.origin(key) for key in flatten(config)},
        document.path,
        frozenset(report.path for report in reports if report.known),
    )


def load_run(run_toml: Path) -> RunConfig:
    """The config of a run from its resolved `run.toml`, whose directory is the run's.

    A run directory may be moved or copied: what it holds lies beside its config, whatever
    `run.dir` said when it was made.

    Raises:
        ConfigError: as `load`; files that the config names are not looked for.
    """
    config = load(run_toml, check_files=False).config
    run = config.run.model_copy(update={"dir": run_toml.resolve().parent})
    return config.model_copy(update={"run": run})


def _validated(
    document: Document, problems: list[PrimeError]
) -> tuple[RunConfig | None, set[KeyPath]]:
    try:
        # by alias alone: `params` and `async_` are names of Python, not of the file
        config = RunConfig.model_validate(document.data, by_alias=True, by_name=False)
    except ValidationError as error:
        for fault in faults(error, RunConfig):
            where = document.where(fault.loc)
            problems.append(PrimeError(fault.what, where=where, fix=fault.fix))
        return salvage(document.data, error)
    return config, set()


def _plugin_problems(
    document: Document,
    config: RunConfig,
    reports: Sequence[PluginReport],
    poisoned: set[KeyPath],
) -> Iterator[PrimeError]:
    known = {report.path for report in reports if report.known}
    found = [(report.path, fault) for report in reports for fault in report.faults]
    for path, choice in choices(config):
        if path not in known:
            prefix = (*path, "with")
            found += [(prefix, fault) for fault in secrets.telltale_secrets(choice.params)]
    for path, fault in found:
        key = (*path, *fault.loc)
        if not touches(key, poisoned):
            yield PrimeError(fault.what, where=document.where(key), fix=fault.fix)


def _clash_place(document: Document, keys: Sequence[KeyPath]) -> str:
    written = [key for key in keys if document.origin(key).kind != "default"]
    return document.where((written or list(keys))[0])


def _in_order(problems: list[PrimeError]) -> list[PrimeError]:
    def order(problem: PrimeError) -> tuple[bool, int]:
        place = problem.where or ""
        line = place.rpartition(":")[2]
        return place.startswith("--set"), int(line) if line.isdigit() else 0

    return sorted(problems, key=order)
