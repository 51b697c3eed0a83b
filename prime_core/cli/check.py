"""`prime-core check`: a yes or no on a distribution of plugins, with reasons.

Exit codes: 0 every rule holds, 1 a rule failed, 2 the check couldn't begin, 3 no rule failed and
one couldn't be decided. Of several targets the worst counts.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, cast

import click

FORMATS = ("text", "json", "junit", "sarif", "github", "html")


@click.command()
@click.argument("targets", metavar="PATH|NAME...", nargs=-1)
@click.option("--changed-since", metavar="REF",
              help="Distributions below PATH (default: here) with files that differ from the last "
              "commit in common with REF.")  # fmt: skip
@click.option("--files", is_flag=True,
              help="The arguments are files: check the distributions that hold them.")  # fmt: skip
@click.option("--level", type=click.Choice(["bronze", "silver", "gold"]),
              help="Default: what checks.toml claims, else bronze.")  # fmt: skip
@click.option(
    "--rule", "rules", multiple=True, metavar="ID", help="Only this rule; may be repeated."
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="text", show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="File; default is standard output.")
@click.option("--explain", metavar="RULE|list", help="Say what a rule demands, and why.")
@click.option("--shrink", is_flag=True, help="Look for the smallest completion of each finding.")
@click.option("--tasks", type=click.IntRange(min=10), default=200, show_default=True,
              help="Tasks that task-blind policies are scored on, at most.")  # fmt: skip
@click.option("--no-cache", is_flag=True, help="Ask every rule anew.")
@click.option("--python", type=click.Path(exists=True, path_type=Path),
              help="Interpreter with prime-core and the requirements.")  # fmt: skip
@click.option("--prove", type=click.Choice(["profile", "training", "replay"]),
              help="Make evidence for level gold, and write it into PATH/evidence.")  # fmt: skip
@click.option("--model", default="", metavar="M", help="Model of --prove profile.")
@click.option("--config", type=click.Path(exists=True, path_type=Path),
              help="Run config of --prove training.")  # fmt: skip
@click.option(
    "-v", "--verbose", is_flag=True, help="Show rules that hold, with what they measured."
)
def check(
    targets: tuple[str, ...],
    changed_since: str | None,
    files: bool,
    level: str | None,
    rules: tuple[str, ...],
    form: str,
    out: Path | None,
    explain: str | None,
    shrink: bool,
    tasks: int,
    no_cache: bool,
    python: Path | None,
    prove: Literal["profile", "training", "replay"] | None,
    model: str,
    config: Path | None,
    verbose: bool,
) -> None:
    """Check distributions of plugins: folders, wheels, or names of what is installed.

    Exits 0 where every rule holds, 1 where one failed, 2 where the check couldn't begin, 3 where no
    rule failed and one couldn't be decided.
    """
    if explain is not None:
        from prime_core.check.pages import explanation

        click.echo(explanation(explain))
        return
    if not targets and not files and changed_since is None:
        raise click.UsageError("say what to check: a folder, a wheel, or a name")
    several = files or changed_since is not None or len(targets) > 1
    if several and prove is not None:
        raise click.UsageError("--prove is about one distribution")
    from prime_core.check.checking import Order
    from prime_core.check.checking import check as run
    from prime_core.check.formats import render
    from prime_core.check.joined import placed, render_all, worst
    from prime_core.check.limits import Limits
    from prime_core.hub import RunContext

    orders = [
        Order(
            target,
            cast("Literal['', 'bronze', 'silver', 'gold']", level or ""),
            rules,
            shrink=shrink,
            cache=None if no_cache else RunContext.from_environment().cache_dir,
            limits=Limits(tasks=tasks),
            python=python or Path(sys.executable),
            progress=_progress,
        )
        for target in _chosen(targets, changed_since, files)
    ]
    if prove is not None:
        from prime_core.check.proving import prove as make

        click.echo(f"wrote {make(orders[0], prove, model=model, config=config)}")
        return
    if several and form == "html":
        render_all([], form)  # says that it can't, before the work is done
    reports = [placed(run(order), Path.cwd()) for order in orders]
    _progress("")
    if several:
        text = render_all(reports, form, verbose=verbose)
    else:
        text = render(reports[0], form, verbose=verbose)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")
    sys.exit(worst(reports))


def _chosen(targets: tuple[str, ...], changed_since: str | None, files: bool) -> list[str]:
    """What the command line means."""
    from prime_core.check.changes import changed_files, distributions_of

    if files and changed_since is not None:
        raise click.UsageError("either --files or --changed-since REF")
    if files:
        return [str(folder) for folder in distributions_of(map(Path, targets))]
    if changed_since is None:
        return list(targets)
    roots = [Path(target) for target in targets] or [Path()]
    found = [file for root in roots for file in changed_files(root, changed_since)]
    return [str(folder) for folder in distributions_of(found)]


def _progress(line: str) -> None:
    """The rule at work, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{line}", nl=False, err=True)
