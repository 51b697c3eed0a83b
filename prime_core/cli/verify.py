"""`prime-core verify`: completions judged by a verifier alone, in a host, with its reasons.

One completion against a gold answer or a problem, or a file of cases. The verifier never runs in
this process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from prime_core.cli.arguments import parameter, read_completion

if TYPE_CHECKING:
    from prime_core.config.sections import HostingSection, PluginChoice
    from prime_core.evaluation.verifying import CaseRow, CaseVerdict, KindCounts
    from prime_core.hosting.verifier_pool import VerifierPool

# What a row of --json tells of a score's evidence where the verifier says it.
EVIDENCE_SHOWN = ("isolation",)


@click.command()
@click.argument("name", metavar="NAME")
@click.option("--with", "params", multiple=True, metavar="KEY=VALUE",
              help="Parameter of the verifier, as in TOML; may be repeated.")  # fmt: skip
@click.option("--gold", metavar="TEXT", help="The gold answer, with --completion.")
@click.option("--completion", metavar="FILE|-",
              help="File with the completion's text; - for standard input.")  # fmt: skip
@click.option("--problem", metavar="FILE", type=click.Path(path_type=Path),
              help="File with a problem as JSON, with --completion.")  # fmt: skip
@click.option("--cases", metavar="FILE", type=click.Path(path_type=Path),
              help="JSONL of cases: completion, gold; id, kind and expected if known.")  # fmt: skip
@click.option("--second-opinion", is_flag=True, help="Ask the verifier's second grader too.")
@click.option("--fail-on-disagreement", is_flag=True,
              help="Exit 1 where a verdict is missing, or isn't the expected one or the "
                   "second opinion.")  # fmt: skip
@click.option("--python", type=click.Path(path_type=Path), help="Interpreter of the host.")
@click.option("--hosts", type=click.IntRange(min=1), default=1, show_default=True,
              help="Host processes.")  # fmt: skip
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), default=30.0,
              show_default=True, help="Seconds of one verdict.")  # fmt: skip
@click.option("--memory-mb", type=click.IntRange(min=1), default=2048, show_default=True,
              help="Address space of a host, MiB.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON; one line a row of --cases.")
def verify(
    name: str,
    params: tuple[str, ...],
    gold: str | None,
    completion: str | None,
    problem: Path | None,
    cases: Path | None,
    second_opinion: bool,
    fail_on_disagreement: bool,
    python: Path | None,
    hosts: int,
    time_limit: float,
    memory_mb: int,
    as_json: bool,
) -> None:
    """Judge completions with verifier NAME: one against --gold or --problem, or rows of --cases."""
    from prime_core.config.sections import HostingSection, PluginChoice
    from prime_core.evaluation.verifying import read_case_rows

    if (cases is None) == (completion is None):
        raise click.UsageError("say what to judge: either --completion FILE or --cases FILE")
    if cases is not None and (gold is not None or problem is not None):
        raise click.UsageError(
            "--gold and --problem belong to --completion; rows of --cases have their own"
        )
    if gold is not None and problem is not None:
        raise click.UsageError("say what to judge by: either --gold or --problem")
    choice = PluginChoice.model_validate(
        {"use": name, "with": dict(parameter(each) for each in params)}
    )
    hosting = HostingSection(hosts=hosts, time_limit_s=time_limit, memory_mb=memory_mb)
    if cases is not None:
        rows = read_case_rows(cases)
        verdicts = asyncio.run(_judge_rows(choice, python, hosting, rows, second_opinion))
        _print_cases(verdicts, as_json)
        failed = False
    elif problem is not None:
        assert completion is not None
        row = _problem_row(problem, read_completion(completion))
        verdicts = asyncio.run(_judge_rows(choice, python, hosting, [row], second_opinion))
        told = verdicts[0].score.evidence
        one = verdicts[0]
        click.echo(_one_as_json(one, told) if as_json else _one_as_text(one, told))
        failed = one.score.status == "error"
    else:
        assert completion is not None
        text = read_completion(completion)
        one, told = asyncio.run(_judge_one(choice, python, hosting, gold, text, second_opinion))
        click.echo(_one_as_json(one, told) if as_json else _one_as_text(one, told))
        verdicts, failed = [one], one.score.status == "error"
    if failed or (fail_on_disagreement and any(map(_objectionable, verdicts))):
        sys.exit(1)


async def _open(choice: PluginChoice, python: Path | None, hosting: HostingSection) -> VerifierPool:
    from prime_core.hosting.verifier_pool import VerifierPool
    from prime_core.hub import RunContext

    cache_dir = RunContext.from_environment().cache_dir
    return await VerifierPool.open(choice, hosting, cache_dir=cache_dir, python=python)


async def _judge_rows(
    choice: PluginChoice,
    python: Path | None,
    hosting: HostingSection,
    rows: Sequence[CaseRow],
    second_opinion: bool,
) -> list[CaseVerdict]:
    from prime_core.evaluation.verifying import verify_cases

    async with await _open(choice, python, hosting) as pool:
        cases = await pool.cases([row.fields for row in rows])
        return await verify_cases(pool, rows, cases, second_opinion=second_opinion)


async def _judge_one(
    choice: PluginChoice,
    python: Path | None,
    hosting: HostingSection,
    gold: str | None,
    text: str,
    second_opinion: bool,
) -> tuple[CaseVerdict, Mapping[str, Any]]:
    """The verdict, and the verifier's explanation; its evidence where it explains nothing."""
    from prime_core.api.types import Completion, Message, Task
    from prime_core.evaluation.verifying import CaseRow, verify_cases

    case = (Task("completion", (), gold), Completion(text, (Message("assistant", text),)))
    row = CaseRow("completion", "", None, {})
    async with await _open(choice, python, hosting) as pool:
        found = (await verify_cases(pool, [row], [case], second_opinion=second_opinion))[0]
        explains = gold is not None and "explain" in pool.description.members
        if gold is None or not explains or found.score.status == "error":
            return found, found.score.evidence
        return found, await pool.explain(gold, text)


def _problem_row(problem: Path, text: str) -> CaseRow:
    """The problem and the completion as a row of cases, which the verifier's `from_case` reads."""
    from prime_core.api.errors import DatasetError
    from prime_core.evaluation.verifying import CaseRow

    try:
        data = json.loads(problem.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DatasetError(
            f"the problem can't be read: {error}", where=str(problem), fix="give a file of JSON"
        ) from error
    return CaseRow("completion", "", None, {"problem": data, "completion": text})


def _objectionable(verdict: CaseVerdict) -> bool:
    return verdict.score.status == "error" or verdict.as_expected is False or verdict.disagrees


# --- one completion -------------------------------------------------------------------------------


def _one_as_json(verdict: CaseVerdict, told: Mapping[str, Any]) -> str:
    found = _line(verdict)
    del found["id"]
    return json.dumps(found | {"explanation": dict(told)}, indent=2)


def _one_as_text(verdict: CaseVerdict, told: Mapping[str, Any]) -> str:
    value = "no value" if verdict.score.value is None else f"{verdict.score.value:g}"
    seconds = "" if verdict.cpu_seconds is None else f", {verdict.cpu_seconds:.4f} s of CPU"
    lines = [f"{value} ({verdict.score.status}{seconds})"]
    # As JSON, so that lone surrogates and control characters of a completion print.
    for key, found in told.items():
        if _is_table(found):
            lines += _columns(found)
        elif key not in ("value", "status"):
            lines.append(f"  {key}: {json.dumps(found)}")
    if verdict.opinion is not None:
        lines.append(f"  second opinion: {_opinion(verdict)}")
    return "\n".join(lines)


def _is_table(found: Any) -> bool:
    return isinstance(found, list) and bool(found) and all(isinstance(row, dict) for row in found)


def _columns(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Rows with equal keys as lines of aligned columns, numbered from 1."""
    names = list(rows[0])
    cells = [["", *names]]
    for number, row in enumerate(rows, 1):
        cells.append([str(number), *(json.dumps(row.get(name)).strip('"') for name in names)])
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    padded = ([f"{cell:<{width}}" for cell, width in zip(line, widths, strict=True)]
              for line in cells)  # fmt: skip
    return [f"  {'  '.join(line)}".rstrip() for line in padded]


# --- a file of cases ------------------------------------------------------------------------------


def _line(verdict: CaseVerdict) -> dict[str, Any]:
    score = verdict.score
    found: dict[str, Any] = {
        "id": verdict.row.id,
        "value": score.value,
        "status": score.status,
        # Where a program was run, its own time is told, not that of the comparison.
        "cpu_seconds": score.evidence.get("cpu_seconds", verdict.cpu_seconds),
        "rule": score.evidence.get("rule"),
    }
    found |= {name: score.evidence[name] for name in EVIDENCE_SHOWN if name in score.evidence}
    if score.status == "error":
        found["detail"] = score.evidence.get("detail")
    if verdict.opinion is not None:
        found["second_opinion"] = verdict.opinion.value
    return found


def _print_cases(verdicts: Sequence[CaseVerdict], as_json: bool) -> None:
    from prime_core.evaluation.verifying import by_kind

    if as_json:
        for verdict in verdicts:
            click.echo(json.dumps(_line(verdict)))
        return
    click.echo(_table(by_kind(verdicts)))
    for verdict in verdicts:
        if verdict.score.status == "error":
            click.echo(f"{verdict.row.id}: {verdict.score.evidence.get('detail')}")
    asked = [verdict for verdict in verdicts if verdict.opinion is not None]
    if asked:
        _print_opinions(asked)


def _print_opinions(asked: Sequence[CaseVerdict]) -> None:
    other = [verdict for verdict in asked if verdict.disagrees]
    click.echo(f"second opinion: {len(asked)} asked, {len(other)} disagree")
    for verdict in other:
        rule = verdict.score.evidence.get("rule")
        ours = f"{verdict.score.value:g} here{f' ({rule})' if rule else ''}"
        click.echo(f"  {verdict.row.id}: {ours}, {_opinion(verdict)} there")
    failed: dict[str, list[str]] = {}
    for verdict in asked:
        if verdict.opinion is not None and verdict.opinion.failure:
            failed.setdefault(verdict.opinion.failure, []).append(verdict.row.id)
    for failure, ids in failed.items():
        click.echo(f"  no opinion on {', '.join(ids[:5])}{' ...' if ids[5:] else ''}: {failure}")


def _opinion(verdict: CaseVerdict) -> str:
    opinion = verdict.opinion
    assert opinion is not None
    if opinion.value is not None:
        return f"{opinion.value:g}"
    return f"none ({opinion.failure})" if opinion.failure else "none"


def _table(counts: Sequence[KindCounts]) -> str:
    width = max(len("kind"), *(len(line.kind) for line in counts))
    head = f"{'kind':<{width}}  count  right  accepted wrong  rejected right  no value  max CPU s"
    return "\n".join(
        [
            head,
            *(
                f"{line.kind:<{width}}  {line.count:5d}  {line.right:5d}  "
                f"{line.accepted_wrong:14d}  {line.rejected_right:14d}  {line.no_value:8d}  "
                f"{line.max_cpu_s:9.3f}"
                for line in counts
            ),
        ]
    )
