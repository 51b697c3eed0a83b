"""`prime-core score`: one completion, judged by an environment in a host, as a run would."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from prime_core.cli.arguments import parameter, read_completion

if TYPE_CHECKING:
    from prime_core.api.types import Score, Task
    from prime_core.config.sections import EnvironmentChoice, HostingSection


@click.command()
@click.argument("environment", metavar="ENV")
@click.option("--with", "params", multiple=True, metavar="KEY=VALUE",
              help="Parameter of the environment, as in TOML; may be repeated.")  # fmt: skip
@click.option("--task", "task_id", metavar="ID", help="Id of the task.")
@click.option("--index", type=click.IntRange(min=0), help="Index of the task.")
@click.option("--completion", required=True, metavar="FILE|-",
              help="File with the completion's text; - for standard input.")  # fmt: skip
@click.option("--verifier", metavar="NAME", help="Replaces the environment's verifier.")
@click.option("--python", type=click.Path(path_type=Path), help="Interpreter of the host.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=30.0,
              show_default=True, help="Seconds.")  # fmt: skip
@click.option("--memory-mb", type=click.IntRange(min=1), default=2048, show_default=True,
              help="Address space of the host, MiB.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def score(
    environment: str,
    params: tuple[str, ...],
    task_id: str | None,
    index: int | None,
    completion: str,
    verifier: str | None,
    python: Path | None,
    time_limit: float,
    memory_mb: int,
    as_json: bool,
) -> None:
    """Score a completion of one task of environment ENV; exits 1 where the verifier fails."""
    from prime_core.config.sections import EnvironmentChoice, HostingSection

    if (task_id is None) == (index is None):
        raise click.UsageError("say which task: either --task ID or --index N")
    choice = EnvironmentChoice.model_validate(
        {
            "use": environment,
            "with": dict(parameter(each) for each in params),
            "python": python,
            "verifier": None if verifier is None else {"use": verifier},
        }
    )
    hosting = HostingSection(time_limit_s=time_limit, memory_mb=memory_mb)
    task, found = asyncio.run(_score(choice, hosting, task_id, index, read_completion(completion)))
    click.echo(_as_json(task, found) if as_json else _as_text(task, found))
    if found.status == "error":
        sys.exit(1)


async def _score(
    choice: EnvironmentChoice,
    hosting: HostingSection,
    task_id: str | None,
    index: int | None,
    text: str,
) -> tuple[Task, Score]:
    from prime_core.api.errors import RunError
    from prime_core.api.types import Completion, Message
    from prime_core.hosting.pool import HostPool
    from prime_core.hub import RunContext

    context = RunContext.from_environment()
    async with await HostPool.open(
        choice, None, hosting, cache_dir=context.cache_dir, run_dir=None
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
