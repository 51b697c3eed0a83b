"""The `prime-core` command: a click group that imports a command's module when it is called.

`prime-core --help` prints static summaries, so that it loads nothing but click (a test looks at
`sys.modules`). Errors of our own type print as one message and exit 2, never as a traceback.
"""

from __future__ import annotations

import importlib
import sys

import click

from prime_core import __version__

# command -> (module, attribute, one-line summary)
COMMANDS: dict[str, tuple[str, str, str]] = {
    "demo": ("prime_core.cli.demo", "demo", "Train a tiny model on addition, start to finish."),
    "train": ("prime_core.cli.train", "train", "Run a config on this machine: all its processes."),
    "config": ("prime_core.cli.config", "config", "Explain, compare or describe run configs."),
    "plugins": ("prime_core.cli.plugins", "plugins", "List, show or diagnose installed plugins."),
    "doctor": ("prime_core.cli.doctor", "doctor", "What this host gives: sandboxes."),
    "env": ("prime_core.cli.env", "env", "Virtual environments for environment hosts."),
    "profile": ("prime_core.cli.profile", "profile", "Measure pass rates of a model on tasks."),
    "eval": ("prime_core.cli.evaluation", "evaluate", "Measure a model, an endpoint or a policy."),
    "score": ("prime_core.cli.score", "score", "Score completions with an environment."),
    "serve": ("prime_core.cli.serve", "serve", "Serve a model to OpenAI's clients."),
    "verify": ("prime_core.cli.verify", "verify", "Judge completions with a verifier alone."),
    "new": ("prime_core.cli.new", "new", "Start an environment, verifier or plugin."),
    "publish": ("prime_core.cli.publishing", "publish", "Publish a distribution to an index."),
    "index": ("prime_core.cli.publishing", "index", "Build, serve or verify an index."),
    "install": ("prime_core.cli.publishing", "install", "Install a verified distribution."),
    "diff": ("prime_core.cli.drift", "diff", "Compare the rewards of two versions."),
    "check": ("prime_core.cli.check", "check", "Check a distribution: yes or no, with reasons."),
    "toploc": ("prime_core.cli.toploc", "toploc", "Calibrate the commitments of rollouts."),
    "report": ("prime_core.cli.report", "report", "Timings and FLOP ratio of a run."),
    "outcomes": ("prime_core.cli.outcomes", "outcomes", "Balance of a run's rollouts."),
    "why": ("prime_core.cli.outcomes", "why", "Tell one sample's life."),
    "validate": ("prime_core.cli.validation", "validate", "Judge one submission by hand."),
    "attack": ("prime_core.cli.attack", "attack", "Play dishonest nodes against a run's checks."),
    "audit-plan": (
        "prime_core.cli.validation",
        "audit_plan",
        "Which share of files to check in full.",
    ),
    "trainer": ("prime_core.cli.roles", "trainer", "The trainer process of a run."),
    "intake": ("prime_core.cli.roles", "intake", "The process that closes a run's steps."),
    "validator": ("prime_core.cli.roles", "validator", "A process that judges submissions."),
    "worker": ("prime_core.cli.roles", "worker", "A worker process of a run."),
    "origin": ("prime_core.cli.shardcast", "origin", "Serve a run's policy versions."),
    "relay": ("prime_core.cli.shardcast", "relay", "Relay policy versions, every shard checked."),
    "fetch": ("prime_core.cli.shardcast", "fetch", "Fetch a policy version from relays."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported on use and listed from `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        if cmd_name not in COMMANDS:
            return None
        module, attribute, _ = COMMANDS[cmd_name]
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Print the static summaries; imports nothing."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, row[2]) for name, row in COMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="prime-core")
def cli() -> None:
    """Asynchronous GRPO on rollouts from machines nobody trusts, and the hub of its plugins."""


def main() -> None:
    """Entry point: run the command; our own errors become one message and exit code 2."""
    try:
        cli(prog_name="prime-core")
    except Exception as error:
        from prime_core.api.errors import PrimeError

        if not isinstance(error, PrimeError):
            raise
        click.echo(f"error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
