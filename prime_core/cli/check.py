"""`prime-core check`: a yes or no on a distribution of plugins, with reasons.

Exit codes: 0 every rule holds, 1 a rule failed, 2 the check couldn't begin, 3 no rule failed and
one couldn't be decided.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal, cast

import click

FORMATS = ("text", "json", "junit", "sarif", "github", "html")


@click.command()
@click.argument("target", metavar="PATH|NAME", required=False)
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
    target: str | None,
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
    """Check a distribution of plugins: a folder, a wheel, or the name of something installed.

    Exits 0 where every rule holds, 1 where one failed, 2 where the check couldn't begin, 3 where no
    rule failed and one couldn't be decided.
    """
    if explain is not None:
        from prime_core.check.pages import explanation

        click.echo(explanation(explain))
        return
    if target is None:
        raise click.UsageError("say what to check: a folder, a wheel, or a name")
    from prime_core.check.checking import Order
    from prime_core.check.checking import check as run
    from prime_core.check.formats import render
    from prime_core.check.lab import Limits
    from prime_core.hub import RunContext

    order = Order(
        target,
        cast("Literal['', 'bronze', 'silver', 'gold']", level or ""),
        rules,
        shrink=shrink,
        cache=None if no_cache else RunContext.from_environment().cache_dir,
        limits=Limits(tasks=tasks),
        python=python or Path(sys.executable),
        progress=_progress,
    )
    if prove is not None:
        from prime_core.check.proving import prove as make

        click.echo(f"wrote {make(order, prove, model=model, config=config)}")
        return
    report = run(order)
    _progress("")
    text = render(report, form, verbose=verbose)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")
    sys.exit(report.exit_code)


def _progress(line: str) -> None:
    """The rule at work, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(f"\r\x1b[2K{line}", nl=False, err=True)
