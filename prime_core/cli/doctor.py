"""`prime-core doctor sandbox`: launches real jails and says what they hold on this host.

Each installed sandbox is made, probed and given a few hostile programs; nothing is assumed from a
version or a setting.
"""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from prime_core.api import Sandbox
    from prime_core.hub import Hub, PluginRecord

# What a jail has to survive, with the status that it has to answer. Small: a doctor is quick.
TRIALS: tuple[tuple[str, str, frozenset[str]], ...] = (
    ("answers", "print(int(input()) + 1)", frozenset({"ok"})),
    ("ends a busy loop", "while True: pass", frozenset({"time_limit"})),
    ("ends a sleeper", "import time\ntime.sleep(60)", frozenset({"time_limit"})),
    (
        "ends a memory bomb",
        "x = [bytearray(1 << 20) for _ in range(4096)]",
        frozenset({"memory_limit"}),
    ),
    (
        "ends a fork bomb",
        "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
        frozenset({"time_limit", "memory_limit"}),
    ),
    ("ends a flood", "while True: print('x' * 10_000)", frozenset({"output_limit", "time_limit"})),
    ("answers afterwards", "print(int(input()) + 1)", frozenset({"ok"})),
)


@click.group()
def doctor() -> None:
    """Examine this host."""


@doctor.command("sandbox")
@click.argument("names", nargs=-1, metavar="[SANDBOX]...")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "--level",
    type=click.Choice(["process", "namespaces", "cgroups"]),
    default="namespaces",
    show_default=True,
    help="Exit 1 unless a sandbox reaches this.",
)
@click.pass_context
def sandbox(context: click.Context, names: tuple[str, ...], as_json: bool, level: Any) -> None:
    """Launch jails with every installed sandbox, or those named, and say what holds.

    Names what is missing and how to get it: a sysctl, an AppArmor profile, a container's flags.
    """
    from prime_core.hub import Hub

    hub = Hub.discover()
    records = [
        record
        for record in hub.records()
        if record.kind == "sandbox" and (not names or record.name in names)
    ]
    for name in set(names) - {record.name for record in records}:
        hub.find("sandbox", name)  # tells what there is instead
    with contextlib.redirect_stdout(sys.stderr):
        found = [examine(hub, record) for record in records]
    reached = any(each["reaches"][level] for each in found)
    if as_json:
        import json

        click.echo(json.dumps({"sandboxes": found, "level": level, "reached": reached}, indent=2))
    else:
        from prime_core.hub.sandboxes import DEFAULT

        click.echo("\n\n".join(text(each) for each in found) or "no sandbox is installed")
        if not reached:
            click.echo(f"\nno sandbox reaches level {level!r} here")
        click.echo(f"\n{conclusion(found, DEFAULT)}")
    if not reached:
        context.exit(1)


def examine(hub: Hub, record: PluginRecord) -> dict[str, Any]:
    """What one sandbox holds and survives, as plain JSON."""
    from prime_core.api import PrimeError
    from prime_core.api.sandboxing import LEVELS
    from prime_core.config.sections import PluginChoice
    from prime_core.hub import RunContext

    row: dict[str, Any] = {
        "sandbox": record.name,
        "distribution": f"{record.distribution} {record.version}",
        "level": "none",
        "policy_digest": "",
        "holds": [],
        "missing": [],
        "trials": {},
    }
    try:
        made = hub.make("sandbox", PluginChoice(use=record.name), RunContext.from_environment())
        try:
            isolation = made.probe()
            row |= {
                "level": isolation.level,
                "policy_digest": isolation.policy_digest,
                "holds": list(isolation.holds),
                "missing": [
                    {"name": each.name, "why": each.why, "fix": each.fix}
                    for each in isolation.missing
                ],
            }
            if isolation.level != "none":
                row["trials"] = trials(made)
        finally:
            made.close()
    except PrimeError as error:
        row["missing"] = [{"name": "sandbox", "why": error.what, "fix": error.fix or ""}]
    survived = all(row["trials"].values())
    row["reaches"] = {
        each: survived and LEVELS.index(row["level"]) >= LEVELS.index(each) for each in LEVELS[1:]
    }
    return row


def trials(made: Sandbox) -> dict[str, bool]:
    """Programs, most of them hostile, in jails of one pool: whether each ended as it had to."""
    from prime_core.api import JailInput, Limits, Program

    limits = Limits(
        cpu_seconds=0.5, wall_seconds=1.5, memory_mb=128, processes=16, output_bytes=1 << 20
    )
    found: dict[str, bool] = {}
    for name, source, statuses in TRIALS:
        with made.open(Program(source), limits) as jail:
            execution = jail.run(JailInput(b"41\n"))
        answered = "ok" not in statuses or execution.stdout == b"42\n"
        found[name] = execution.status in statuses and answered
    return found


# What a level means to somebody who hasn't read docs/reference/sandbox.md.
MEANING = {
    "none": "nothing can be launched",
    "process": "Landlock, seccomp and limits on a plain process; used only where named",
    "namespaces": "a root, network and processes of its own; memory limited for each process",
    "cgroups": "the strongest: as namespaces, and memory limited over the whole jail",
}


def conclusion(found: list[dict[str, Any]], default: str) -> str:
    """What all this means for a run that names no sandbox."""
    row = next((each for each in found if each["sandbox"] == default), None)
    if row is None:
        return f"runs use {default!r} where they name no sandbox; it wasn't examined"
    if row["reaches"]["cgroups"]:
        return f"runs use {default!r} where they name no sandbox: nothing is to be done"
    if row["reaches"]["namespaces"]:
        return (
            f"runs use {default!r} where they name no sandbox: it's strong enough, and could be "
            "stronger with what stands under missing"
        )
    others = [each["sandbox"] for each in found if each["reaches"]["namespaces"]]
    way = f'set [hosting] sandbox = {{ use = "{others[0]}" }}, or ' if others else ""
    return (
        f"runs use {default!r} where they name no sandbox, and it isn't strong enough here: {way}"
        "do what stands under missing; see docs/how-to/sandbox-host-setup.md"
    )


def text(row: dict[str, Any]) -> str:
    """One sandbox for people."""
    lines = [f"{row['sandbox']}: level {row['level']} ({MEANING[row['level']]})"]
    lines.append(f"  from     {row['distribution']}")
    if row["policy_digest"]:
        lines.append(f"  policy   {row['policy_digest'][:16]} (equal on two hosts: the same jail)")
    if row["holds"]:
        lines += _wrapped("holds", row["holds"])
    passed = [name for name, passed in row["trials"].items() if passed]
    if row["trials"]:
        count = f"{len(passed)} of {len(row['trials'])} passed: "
        lines += _wrapped("trials", [count + passed[0], *passed[1:]] if passed else [count])
    lines += [f"  FAILS    {name}" for name, passed in row["trials"].items() if not passed]
    for each in row["missing"]:
        lines.append(f"  missing  {each['name']}: {each['why']}")
        if each["fix"]:
            lines.append(f"           fix: {each['fix']}")
    return "\n".join(lines)


def _wrapped(label: str, words: list[str]) -> list[str]:
    import textwrap

    return textwrap.wrap(
        ", ".join(words),
        width=96,
        initial_indent=f"  {label:<9}",
        subsequent_indent=" " * 11,
    )
