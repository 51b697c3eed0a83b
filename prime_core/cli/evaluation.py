"""`prime-core eval` and `prime-core profile`: policies and tasks measured without training."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from prime_core.api.types import TaskProfile
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.evaluation.evaluate import EvalResult

F = TypeVar("F", bound=Callable[..., Any])

PARAMS = click.option(
    "--with",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Parameter of the environment, as in TOML; may be repeated.",
)


def model_options(command: F) -> F:
    """Options of commands that load a model without a run config."""
    for option in (
        click.option("--gguf", metavar="FILE", help="GGUF file inside the model's directory."),
        click.option(
            "--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32",
            show_default=True, help="Dtype of the weights.",
        ),
        click.option(
            "--max-tokens", type=click.IntRange(min=1), default=256, show_default=True,
            help="Token limit of one completion.",
        ),
        click.option(
            "--max-prompt-tokens", type=click.IntRange(min=1), default=1024, show_default=True,
            help="Token limit of a prompt.",
        ),
        click.option(
            "--batch-size", type=click.IntRange(min=1), default=32, show_default=True,
            help="Completions generated together.",
        ),
        click.option(
            "--threads", type=click.IntRange(min=1), default=1, show_default=True,
            help="Torch threads.",
        ),
    ):  # fmt: skip
        command = option(command)
    return command


@click.command("eval")
@click.argument("run", required=False, type=click.Path(path_type=Path), metavar="[RUN]")
@click.option("--model", metavar="DIR", help="Model directory or package:NAME, instead of a run.")
@click.option("--version", type=click.IntRange(min=0), help="Policy version of RUN.")
@click.option("--env", "environment", metavar="NAME", help="Environment; default: [eval] of RUN.")
@PARAMS
@click.option("--tasks", type=click.IntRange(min=1), help="Tasks of each environment.")
@click.option("--samples", type=click.IntRange(min=0), default=1, show_default=True,
              help="Sampled completions of a task; 0: greedy alone.")  # fmt: skip
@click.option("--temperature", type=click.FloatRange(min=0, min_open=True),
              help="Default: RUN's, or 1.")  # fmt: skip
@click.option("--greedy/--no-greedy", default=True, show_default=True,
              help="Also measure the most probable completion.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the samples.")  # fmt: skip
@model_options
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def evaluate(
    run: Path | None,
    model: str | None,
    version: int | None,
    environment: str | None,
    params: tuple[str, ...],
    tasks: int | None,
    samples: int,
    temperature: float | None,
    greedy: bool,
    seed: int,
    as_json: bool,
    **settings: Any,
) -> None:
    """Mean score of a policy on held-out tasks, with a 95 % interval."""
    from prime_core.evaluation import evaluate as measuring
    from prime_core.evaluation import policies

    if (run is None) == (model is None):
        raise click.UsageError("say which policy: either RUN or --model DIR")
    chosen = None if environment is None else _environment(environment, params)
    if run is not None:
        from prime_core.config.load import load_run

        config = load_run(policies.run_toml(run))
        policy = policies.policy_of_run(config, version)
        environments: Sequence[EnvironmentChoice] = config.eval.environments
        if environment is not None and chosen is not None:
            same = [one for one in environments if one.label == environment and not params]
            environments = same or [chosen]
        tasks = tasks or config.eval.tasks
    else:
        if chosen is None:
            raise click.UsageError("--model needs --env NAME")
        config = _bare_config(str(model), chosen, settings)
        policy, _ = policies.policy_of_model(config.model)
        environments = [chosen]
    result = measuring.evaluate(
        config,
        policy,
        environments,
        tasks=tasks,
        samples=samples,
        temperature=temperature,
        greedy=greedy,
        seed=seed,
        run_dir=None if run is None else config.run.dir,
    )
    if as_json:
        click.echo(json.dumps(result.to_json()))
    else:
        _print_evaluation(result)


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
    as_json: bool,
    **settings: Any,
) -> None:
    """Measure how often a model solves each task of environment ENV.

    Writes profiles/<environment>-<model digest>.parquet, which the data filter `pass_rate_band`
    reads. With --config everything but tasks, samples and seed comes from the run config, so that
    the profile is of the very environment, verifier and model that the run will use. An
    interrupted profile goes on where it stopped.
    """
    from prime_core.evaluation import policies, profiles

    if (config_path is None) == (model is None):
        raise click.UsageError("say which model: either --model M or --config RUN.toml")
    if config_path is not None:
        if params or label:
            raise click.UsageError("--with and --label belong to --model; edit the config instead")
        config, chosen = _configured(config_path, environment)
        out = config.filters.profiles or out
    else:
        chosen = _environment(environment, params, label)
        config = _bare_config(str(model), chosen, {**settings, "temperature": temperature})
    policy, digest = policies.policy_of_model(config.model)

    def progress(done: int, total: int) -> None:
        if not as_json:
            click.echo(f"\r{done} of {total} tasks", nl=done == total, err=True)

    path, found = profiles.profile(
        config,
        policy,
        chosen,
        model_digest=digest,
        samples=samples,
        tasks=tasks,
        out=out,
        seed=seed,
        progress=progress,
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


def _environment(name: str, params: Sequence[str], label: str | None = None) -> EnvironmentChoice:
    from prime_core.config.sections import EnvironmentChoice

    return EnvironmentChoice.model_validate(
        {"use": name, "name": label, "with": dict(_param(each) for each in params)}
    )


def _param(text: str) -> tuple[str, Any]:
    key, equals, raw = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} isn't KEY=VALUE", param_hint="--with")
    try:
        return key, tomllib.loads(f"value = {raw}")["value"]
    except tomllib.TOMLDecodeError:
        return key, raw  # a shell eats quotes


def _bare_config(model: str, environment: EnvironmentChoice, settings: dict[str, Any]) -> RunConfig:
    """A run config for a model without a run."""
    from prime_core.config.sections import RunConfig

    return RunConfig.model_validate(
        {
            "model": {"path": model, "gguf": settings["gguf"], "dtype": settings["dtype"]},
            "engine": {
                "max_tokens": settings["max_tokens"],
                "max_prompt_tokens": settings["max_prompt_tokens"],
                "threads": settings["threads"],
                "temperature": settings.get("temperature", 1.0),
                "with": {"batch_size": settings["batch_size"]},
            },
            "environments": [environment],
        }
    )


def _print_evaluation(result: EvalResult) -> None:
    click.echo(f"policy version {result.version}")
    for name, group in (("sampled", result.sampled), ("greedy", result.greedy)):
        for label, one in group.items():
            mean = "nothing scored" if one.mean is None else f"{one.mean:.3f}"
            click.echo(
                f"{label:<20} {name:<8} {mean}  [{one.low:.3f}, {one.high:.3f}]  "
                f"{one.tasks} tasks, {one.completions} completions, {one.unscored} unscored, "
                f"length {one.length:.1f}, truncated {one.truncated:.1%}"
            )


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
