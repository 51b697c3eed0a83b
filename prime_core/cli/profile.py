"""`prime-core profile`: how often a model solves each task, for offline filters."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prime_core.cli.model_options import (
    PARAMS,
    bare_config,
    environment_choice,
    model_options,
    place_options,
)
from prime_core.cli.progress_line import ProgressLine

if TYPE_CHECKING:
    from prime_core.api.types import TaskProfile
    from prime_core.config.sections import EnvironmentChoice, RunConfig


@click.command()
@click.argument("environment", metavar="ENV")
@click.option("--config", "config_path", type=click.Path(path_type=Path), metavar="RUN.toml",
              help="Take environment ENV (its label), model, engine from a config.")  # fmt: skip
@click.option("--model", metavar="M", help="Model directory or package:NAME, without --config.")
@click.option("-k", "--samples", type=click.IntRange(min=1), default=8, show_default=True,
              help="Completions of each task.")  # fmt: skip
@PARAMS
@click.option("--label", metavar="NAME", help="The environment's name in the run config.")
@click.option("--tasks", type=click.IntRange(min=1), help="Evenly spread tasks; default: all.")
@click.option("--temperature", type=click.FloatRange(min=0, min_open=True), default=1.0,
              show_default=True)  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path("profiles"),
              show_default=True, help="Directory of profiles.")  # fmt: skip
@place_options
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def profile(
    environment: str,
    config_path: Path | None,
    model: str | None,
    samples: int,
    params: tuple[str, ...],
    label: str | None,
    tasks: int | None,
    temperature: float,
    seed: int,
    out: Path,
    on: str,
    workers: int | None,
    as_json: bool,
    **settings: Any,
) -> None:
    """Measure how often a model solves each task of environment ENV.

    Writes profiles/<environment>-<model digest>.parquet, which the data filter `pass_rate_band`
    reads. With --config everything but tasks, samples and seed comes from the run config, so that
    the profile is of the very environment, verifier and model that the run will use. An
    interrupted profile goes on where it stopped.
    """
    from prime_core.config.sections import HostingSection
    from prime_core.evaluation import policies, profiles
    from prime_core.evaluation.measuring import Measuring, Model
    from prime_core.evaluation.sampling import Sampling

    if (config_path is None) == (model is None):
        raise click.UsageError("say which model: either --model M or --config RUN.toml")
    if config_path is not None:
        if params or label:
            raise click.UsageError("--with and --label belong to --model; edit the config instead")
        config, chosen = _configured(config_path, environment)
        out = config.filters.profiles or out
    else:
        chosen = environment_choice(environment, params, label=label)
        hosting = HostingSection(hosts=(workers or 1) if on == "local" else 1)
        config = bare_config(
            str(model), chosen, {**settings, "temperature": temperature}, hosting=hosting
        )
    policy, digest = policies.policy_of_model(config.model)

    how = Measuring(
        Sampling(samples, config.engine.temperature, seed), tasks, out, on=on, workers=workers
    )
    path, found = profiles.profile(
        config,
        chosen,
        Model(config.model.path, policy, digest),
        how,
        (lambda done, total: None) if as_json else ProgressLine("completions"),
    )
    counts, kept = profiles.histogram(found, samples), profiles.kept_by_band(found)
    if as_json:
        numbers = {"path": str(path), "tasks": len(found), "passes": counts, "kept": kept}
        click.echo(json.dumps(numbers))
    else:
        _print_profile(path, found, counts, kept)


def _configured(path: Path, label: str) -> tuple[RunConfig, EnvironmentChoice]:
    """A run config and its environment of that label."""
    from prime_core.api.errors import RunError
    from prime_core.config.load import load

    # The directory of profiles may not exist yet: this command makes it.
    config = load(path, check_files=False).config
    for choice in config.environments:
        if choice.label == label:
            return config, choice
    labels = ", ".join(choice.label for choice in config.environments)
    raise RunError(f"no environment is called {label!r}", where=str(path), fix=f"name {labels}")


def _print_profile(
    path: Path, found: Sequence[TaskProfile], counts: Sequence[int], kept: dict[str, int]
) -> None:
    widest = max([*counts, 1])
    for passes, count in enumerate(counts):
        bar = "#" * round(40 * count / widest)
        click.echo(f"{passes:>3}/{len(counts) - 1}  {count:>6}  {bar}")
    for name, count in kept.items():
        click.echo(f"pass_rate_band {name} keeps {count} of {len(found)} tasks")
    click.echo(f"wrote {path}")
