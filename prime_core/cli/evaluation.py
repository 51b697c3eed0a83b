"""`prime-core eval`: a run's policies, models and endpoints, measured on environments."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prime_core.cli.arguments import parameter
from prime_core.cli.model_options import (
    PARAMS,
    bare_config,
    endpoint_options,
    environment_choice,
    hosting_options,
    hosting_section,
    model_options,
    place_options,
)
from prime_core.cli.progress_line import ProgressLine

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, RunConfig
    from prime_core.evaluation.evaluate import EvalResult
    from prime_core.evaluation.measuring import Model
    from prime_core.evaluation.report_files import Report


@click.command("eval")
@click.argument("subject", required=False, metavar="[ENV|RUN]")
@click.option("--model", metavar="DIR|NAME",
              help="Model directory or package:NAME; its name there with --endpoint.")  # fmt: skip
@endpoint_options
@click.option(
    "--env", "environment", metavar="NAME", help="The same as ENV; of RUN: one of [eval]."
)
@PARAMS
@hosting_options
@click.option("--tasks", type=click.IntRange(min=1), help="Evenly spread tasks; default: all.")
@click.option("--samples", type=click.IntRange(min=0), default=1, show_default=True,
              help="Sampled completions of a task. Of RUN 0 means greedy alone.")  # fmt: skip
@click.option("--temperature", type=click.FloatRange(min=0),
              help="Default: 1, or RUN's; 0 is greedy.")  # fmt: skip
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True,
              help="Seed of the samples.")  # fmt: skip
@click.option("--length-budget", type=click.IntRange(min=1), metavar="N",
              help="Ask for N thinking tokens, and report how many there were.")  # fmt: skip
@click.option("--pass-at", "ks", type=click.IntRange(min=1), multiple=True, metavar="K",
              help="K of pass@k; may be repeated. Default: 1, 2, 4, ... samples.")  # fmt: skip
@click.option("--pass-mark", type=float, help="Lowest score that passes; default: the highest.")
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              help="Directory of journal and report; default: evals/ENV-MODEL.")  # fmt: skip
@place_options
@model_options
@click.option("--version", type=click.IntRange(min=0), help="Policy version of RUN.")
@click.option("--greedy/--no-greedy", default=True, show_default=True,
              help="Of RUN: also measure the most probable completion.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line.")
def evaluate(subject: str | None, environment: str | None, **options: Any) -> None:
    """Measure a model on environment ENV, or a policy of RUN on its held-out tasks.

    With --model or --endpoint: pass@k with 95 % intervals, tokens and cost, and a report in --out.
    A command that was interrupted goes on when it is given again. Exits 1 where requests to an
    endpoint were given up. Without: mean scores of a policy of RUN.
    """
    if options["model"] is None and options["endpoint"] is None:
        if subject is None:
            raise click.UsageError("say which policy: either RUN or --model DIR or --endpoint URL")
        _evaluate_run(Path(subject), environment, options)
        return
    name = subject or environment
    if name is None or (subject and environment and subject != environment):
        raise click.UsageError("--model and --endpoint need one environment: ENV or --env NAME")
    report = _measure(name, options)
    if options["as_json"]:
        click.echo(json.dumps(report.to_json(tasks=False)))
    else:
        click.echo("\n".join(lines_of(report)))
    if report.summary.left:
        sys.exit(1)


def _measure(name: str, options: dict[str, Any]) -> Report:
    from prime_core.evaluation.measuring import Measuring, length_budget, measure
    from prime_core.evaluation.sampling import Sampling

    if options["samples"] < 1:
        raise click.UsageError("--samples must be 1 or more; --temperature 0 is greedy")
    chosen = environment_choice(
        name, options["params"], verifier=options["verifier"], python=options["python"]
    )
    here = options["on"] == "local"
    hosting = hosting_section(
        options["time_limit"],
        options["memory_mb"],
        (options["workers"] or 1) if here else 1,
    )
    config, model = _model(chosen, options, hosting)
    temperature = options["temperature"]
    target = options["length_budget"]
    slug = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(model.name).name.removeprefix("package:"))
    out = options["out"] or Path("evals") / f"{chosen.label}-{slug or 'model'}"
    how = Measuring(
        sampling=Sampling(
            options["samples"], 1.0 if temperature is None else temperature, options["seed"]
        ),
        tasks=options["tasks"],
        out=out,
        budget=None if target is None else length_budget(config, target),
        on=options["on"],
        workers=options["workers"],
        ks=options["ks"],
        pass_mark=options["pass_mark"],
    )
    if not options["as_json"]:
        click.echo(f"journal and report: {out}", err=True)
    quiet = options["as_json"]
    line = (lambda done, total: None) if quiet else ProgressLine("completions")
    return measure(config, chosen, model, how, line)


def _model(
    chosen: EnvironmentChoice, options: dict[str, Any], hosting: Any
) -> tuple[RunConfig, Model]:
    """The model that the options name, and the config that runs it."""
    from prime_core.evaluation.measuring import Model

    if options["endpoint"] is None:
        from prime_core.evaluation.policies import policy_of_model

        config = bare_config(options["model"], chosen, options, hosting=hosting)
        policy, digest = policy_of_model(config.model)
        return config, Model(options["model"], policy, digest)
    from prime_core.evaluation.endpoints import endpoint_engine

    engine = endpoint_engine(
        options["endpoint"],
        options["model"],
        options["api_key_env"],
        {
            "concurrency": options["concurrency"],
            "retries": options["retries"],
            "timeout_s": options["answer_limit"],
            "price_prompt": options["price_prompt"],
            "price_completion": options["price_completion"],
            "extra": dict(parameter(each) for each in options["request_fields"]),
        },
    )
    config = bare_config(engine["with"]["model"], chosen, options, engine=engine, hosting=hosting)
    return config, Model(engine["with"]["model"], None, "")


def lines_of(report: Report) -> list[str]:
    """A report in a few lines for a terminal."""
    summary = report.summary
    mean = summary.mean
    found = [report.title, report.lead]
    if mean.mean is None:
        found.append("mean score  nothing was scored")
    else:
        found.append(f"mean score  {mean.mean:.4f}  [{mean.low:.4f}, {mean.high:.4f}]")
    for k, one in summary.passing.items():
        if one.mean is not None:
            found.append(
                f"{f'pass@{k}':<11} {one.mean:.4f}  [{one.low:.4f}, {one.high:.4f}]  "
                f"{one.tasks:,} tasks"
            )
    statuses = ", ".join(f"{count:,} {name}" for name, count in summary.statuses.items() if count)
    found.append(f"completions {summary.completions:,}: {statuses}")
    if summary.lengths is not None:
        lengths = summary.lengths
        found.append(
            f"tokens      mean {lengths.mean:.1f}, median {lengths.quantiles[2]}, "
            f"{lengths.truncated:.1%} at the limit; {summary.prompt_tokens:,} in, "
            f"{summary.tokens:,} out"
        )
    if summary.budget is not None:
        budget = summary.budget
        found.append(
            f"budget      asked for {budget.target}, mean distance {budget.mean_error:.1f}, "
            f"{budget.within_tenth:.1%} within a tenth"
        )
    if summary.cost:
        found.append(f"cost        {summary.cost:.4f}")
    found += [f"  {count:,} x {what}" for what, count in summary.errors[:5]]
    found += [f"  {count:,} given up: {why}" for why, count in summary.left.items()]
    return [*found, *(f"note: {note}" for note in report.notes)]


def _evaluate_run(run: Path, environment: str | None, options: dict[str, Any]) -> None:
    from prime_core.config.load import load_run
    from prime_core.evaluation import evaluate as measuring
    from prime_core.evaluation import policies

    _refuse_for_runs(options)
    config = load_run(policies.run_toml(run))
    policy = policies.policy_of_run(config, options["version"])
    environments: Sequence[EnvironmentChoice] = config.eval.environments
    if environment is not None:
        params = options["params"]
        same = [one for one in environments if one.label == environment and not params]
        environments = same or [environment_choice(environment, params)]
    result = measuring.evaluate(
        config,
        policy,
        environments,
        tasks=options["tasks"] or config.eval.tasks,
        samples=options["samples"],
        temperature=options["temperature"],
        greedy=options["greedy"],
        seed=options["seed"],
        run_dir=config.run.dir,
    )
    if options["as_json"]:
        click.echo(json.dumps(result.to_json()))
    else:
        _print_evaluation(result)


def _refuse_for_runs(options: dict[str, Any]) -> None:
    """What belongs to ENV is an error with RUN, not a wish that nobody hears."""
    given = [
        option
        for option, absent in (("length_budget", None), ("out", None), ("pass_mark", None),
                               ("ks", ()), ("on", "local"), ("verifier", None))
        if options[option] != absent
    ]  # fmt: skip
    if given or options["temperature"] == 0:
        name = (
            {"ks": "pass-at"}.get(given[0], given[0].replace("_", "-")) if given else "temperature"
        )
        raise click.UsageError(
            f"--{name} works with --model or --endpoint: a policy of RUN is measured as RUN says"
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
