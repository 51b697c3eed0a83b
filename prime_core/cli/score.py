"""`prime-core score`: completions, one or a file, judged in hosts as a run would judge them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prime_core.cli.arguments import parameter, read_completion
from prime_core.cli.model_options import (
    PARAMS,
    environment_choice,
    hosting_options,
    hosting_section,
    place_options,
)

if TYPE_CHECKING:
    from prime_core.api.types import Score, Task
    from prime_core.check.packaged import Packaged
    from prime_core.config.sections import EnvironmentChoice, HostingSection


@click.command()
@click.argument("environment", metavar="ENV")
@PARAMS
@click.option("--task", "task_id", metavar="ID", help="Id of the task.")
@click.option("--index", type=click.IntRange(min=0), help="Index of the task.")
@click.option("--completion", metavar="FILE|-",
              help="File with one completion's text; - for standard input.")  # fmt: skip
@click.option("--completions", type=click.Path(path_type=Path), metavar="FILE",
              help="JSONL or Parquet file of completions, each with its task.")  # fmt: skip
@click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN",
              help="What FILE calls task, index, completion, messages, id, ...")  # fmt: skip
@click.option("--skip-bad", is_flag=True, help="Leave rows out that can't be used.")
@click.option("--pass-at", "ks", type=click.IntRange(min=1), multiple=True, metavar="K",
              help="K of pass@k; may be repeated. Default: 1, 2, 4, ... rows a task.")  # fmt: skip
@click.option("--pass-mark", type=float, help="Lowest score that passes; default: the highest.")
@click.option("--package", metavar="PATH",
              help="Folder or wheel that provides ENV; built, and run in a jail.")  # fmt: skip
@click.option("--out", type=click.Path(file_okay=False, path_type=Path),
              help="Directory of journal and report; default: scores/ENV-FILE.")  # fmt: skip
@place_options
@hosting_options
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def score(
    environment: str,
    completion: str | None,
    completions: Path | None,
    **options: Any,
) -> None:
    """Score one completion of a task of environment ENV, or a whole file of them.

    A file is judged in parallel; the report lies in --out, and a command that was interrupted goes
    on when it is given again. Exits 1 where the verifier fails.
    """
    choice = environment_choice(
        environment, options["params"], verifier=options["verifier"], python=options["python"]
    )
    hosting = hosting_section(options["time_limit"], options["memory_mb"])
    if (completion is None) == (completions is None):
        raise click.UsageError("give either --completion FILE or --completions FILE")
    package = options["package"]
    if completions is not None:
        if package is not None:
            raise click.UsageError("--package belongs to --completion; install it to score a file")
        failed = _score_file(completions, choice, hosting, options)
    elif package is not None:
        failed = _score_package(package, str(completion), choice, hosting, options)
    else:
        failed = _score_one(str(completion), choice, hosting, options)
    if failed:
        sys.exit(1)


def _score_file(
    path: Path, choice: EnvironmentChoice, hosting: HostingSection, options: dict[str, Any]
) -> bool:
    from prime_core.cli.evaluation import lines_of
    from prime_core.cli.progress_line import ProgressLine
    from prime_core.evaluation.completions import CompletionFile
    from prime_core.evaluation.scoring import ScoreSettings, score_file

    if options["task_id"] is not None or options["index"] is not None:
        raise click.UsageError("--task and --index belong to --completion; rows name their tasks")
    quiet = options["as_json"]
    settings = ScoreSettings(
        out=options["out"] or Path("scores") / f"{choice.label}-{path.stem}",
        on=options["on"],
        workers=options["workers"],
        ks=options["ks"],
        pass_mark=options["pass_mark"],
        skip_bad=options["skip_bad"],
    )
    if not quiet:
        click.echo(f"journal and report: {settings.out}", err=True)
    report = score_file(
        CompletionFile(path, dict(_column(each) for each in options["columns"])),
        choice,
        hosting,
        settings,
        (lambda done, total: None) if quiet else ProgressLine("completions"),
    )
    if quiet:
        click.echo(json.dumps(report.to_json(tasks=False)))
    else:
        click.echo("\n".join(lines_of(report)))
    return report.summary.statuses["error"] > 0


def _column(text: str) -> tuple[str, str]:
    field, column = parameter(text)
    return field, str(column)


def _score_package(
    package: str,
    file: str,
    choice: EnvironmentChoice,
    hosting: HostingSection,
    options: dict[str, Any],
) -> bool:
    from prime_core.check.packaged import packaged

    if choice.python is not None:
        raise click.UsageError("--package brings its own interpreter; leave --python out")
    with packaged(package) as made:
        if choice.use not in made.names:
            has = ", ".join(made.names) or "no plugin"
            raise click.UsageError(f"{package} doesn't provide {choice.use}; it has {has}")
        jailed = choice.model_copy(update={"python": made.python})
        return _score_one(file, jailed, hosting, options, made)


def _score_one(
    file: str,
    choice: EnvironmentChoice,
    hosting: HostingSection,
    options: dict[str, Any],
    package: Packaged | None = None,
) -> bool:
    task_id, index = options["task_id"], options["index"]
    if (task_id is None) == (index is None):
        raise click.UsageError("say which task: either --task ID or --index N")
    said = read_completion(file)
    task, found = asyncio.run(_score(choice, hosting, task_id, index, said, package))
    click.echo(_as_json(task, found) if options["as_json"] else _as_text(task, found))
    return found.status == "error"


async def _score(
    choice: EnvironmentChoice,
    hosting: HostingSection,
    task_id: str | None,
    index: int | None,
    text: str,
    package: Packaged | None,
) -> tuple[Task, Score]:
    from prime_core.api.errors import RunError
    from prime_core.api.types import Completion, Message
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import RunContext

    cache_dir = package.cache_dir if package else RunContext.from_environment().cache_dir
    block, log_dir = (package.block, package.log_dir) if package else ((), None)
    async with await HostPool.open(
        choice, None, hosting, cache_dir=cache_dir, run_dir=None, block=block, log_dir=log_dir
    ) as pool:
        at = index if task_id is None else await pool.find(task_id)
        count = pool.description.task_count
        if at is None or at >= count:
            named = f"no task {task_id!r}" if at is None else f"no task with index {at}"
            raise RunError(
                f"{named} among its {count} tasks",
                where=f"environment {choice.use}",
                fix="give the id of one of its tasks, or --index from 0",
            )
        task = (await pool.tasks([at]))[0]
        said = Completion(text, messages=(Message("assistant", text),))
        return task, (await pool.score([(at, said)]))[0]


def _as_json(task: Task, score: Score) -> str:
    return json.dumps(
        {
            "task": task.id,
            "value": score.value,
            "status": score.status,
            "parts": dict(score.parts),
            "evidence": dict(score.evidence),
        },
        indent=2,
    )


def _as_text(task: Task, score: Score) -> str:
    value = "no value" if score.value is None else f"{score.value:g}"
    lines = [f"{task.id}: {value} ({score.status})"]
    lines += [f"  {name} = {part:g}" for name, part in score.parts.items()]
    # As JSON, so that lone surrogates and control characters of a completion print.
    lines += [f"  {name}: {json.dumps(found)}" for name, found in score.evidence.items()]
    return "\n".join(lines)
