"""Options that `eval`, `profile` and `score` share: environments, models, endpoints, places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from prime_core.cli.arguments import parameter

if TYPE_CHECKING:
    from prime_core.config.sections import EnvironmentChoice, HostingSection, RunConfig

F = TypeVar("F", bound=Callable[..., Any])

PARAMS = click.option(
    "--with",
    "params",
    multiple=True,
    metavar="KEY=VALUE",
    help="Parameter of the environment, as in TOML; may be repeated.",
)


def applied(command: F, options: Sequence[Callable[[Any], Any]]) -> F:
    """The command with these options, in the order of `--help`."""
    for option in reversed(options):
        command = option(command)
    return command


def hosting_options(command: F) -> F:
    """How environments run, and where."""
    return applied(
        command,
        (
            click.option("--verifier", metavar="NAME", help="Replaces the environment's verifier."),
            click.option(
                "--python", type=click.Path(path_type=Path), help="Interpreter of the hosts."
            ),
            click.option(
                "--time-limit", type=click.FloatRange(min=0, min_open=True), default=30.0,
                show_default=True, help="Seconds that one verdict may take.",
            ),
            click.option(
                "--memory-mb", type=click.IntRange(min=1), default=2048, show_default=True,
                help="Address space of a host, MiB.",
            ),
        ),
    )  # fmt: skip


def place_options(command: F) -> F:
    """On which machines, and with how many processes."""
    return applied(
        command,
        (
            click.option(
                "--on", default="local", show_default=True, metavar="PLACE",
                help="local; ray: this machine's cluster (or RAY_ADDRESS's); ray://HOST:PORT.",
            ),
            click.option(
                "--workers", type=click.IntRange(min=1),
                help="Ray workers, or hosts here; default: one a CPU, for eval here one.",
            ),
        ),
    )  # fmt: skip


def model_options(command: F) -> F:
    """Options of commands that load a model without a run config."""
    return applied(
        command,
        (
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
                "--max-prompt-tokens", type=click.IntRange(min=1), default=1024,
                show_default=True, help="Token limit of a prompt.",
            ),
            click.option(
                "--batch-size", type=click.IntRange(min=1), default=32, show_default=True,
                help="Completions generated together.",
            ),
            click.option(
                "--threads", type=click.IntRange(min=1), default=1, show_default=True,
                help="Torch threads.",
            ),
        ),
    )  # fmt: skip


def endpoint_options(command: F) -> F:
    """How a model behind an endpoint is asked."""
    return applied(
        command,
        (
            click.option(
                "--endpoint", metavar="URL",
                help="OpenAI-compatible endpoint, e.g. http://HOST:8000/v1; --model is its name.",
            ),
            click.option(
                "--api-key-env", metavar="NAME",
                help="Variable with the key; default: OPENAI_API_KEY where it is set.",
            ),
            click.option(
                "--concurrency", type=click.IntRange(min=1), default=8, show_default=True,
                help="Requests under way at once.",
            ),
            click.option(
                "--retries", type=click.IntRange(min=0), default=6, show_default=True,
                help="Further tries after 429, 5xx, timeouts and lost connections.",
            ),
            click.option(
                "--answer-limit", type=click.FloatRange(min=0, min_open=True), default=600.0,
                show_default=True, help="Seconds that an answer may take.",
            ),
            click.option(
                "--price-prompt", type=click.FloatRange(min=0), default=0.0,
                help="Price of a million prompt tokens.",
            ),
            click.option(
                "--price-completion", type=click.FloatRange(min=0), default=0.0,
                help="Price of a million completion tokens.",
            ),
            click.option(
                "--request-field", "request_fields", multiple=True, metavar="KEY=VALUE",
                help="Further field of each request, as in TOML; may be repeated.",
            ),
        ),
    )  # fmt: skip


def environment_choice(
    name: str,
    params: Sequence[str],
    *,
    label: str | None = None,
    verifier: str | None = None,
    python: Path | None = None,
) -> EnvironmentChoice:
    """The environment that arguments name."""
    from prime_core.config.sections import EnvironmentChoice

    return EnvironmentChoice.model_validate(
        {
            "use": name,
            "name": label,
            "with": dict(parameter(each) for each in params),
            "python": None if python is None else python.absolute(),
            "verifier": None if verifier is None else {"use": verifier},
        }
    )


def hosting_section(time_limit: float, memory_mb: int, hosts: int = 1) -> HostingSection:
    """The hosts that arguments ask for."""
    from prime_core.config.sections import HostingSection

    return HostingSection(hosts=hosts, time_limit_s=time_limit, memory_mb=memory_mb)


def bare_config(
    model: str,
    environment: EnvironmentChoice,
    settings: dict[str, Any],
    *,
    engine: dict[str, Any] | None = None,
    hosting: HostingSection | None = None,
) -> RunConfig:
    """A run config for a model without a run.

    Args:
        settings: what `model_options` gave, and perhaps a temperature.
        engine: `use` and `with` of another engine than transformers.
    """
    from prime_core.config.sections import HostingSection, RunConfig

    return RunConfig.model_validate(
        {
            "model": {"path": model, "gguf": settings["gguf"], "dtype": settings["dtype"]},
            "engine": {
                "max_tokens": settings["max_tokens"],
                "max_prompt_tokens": settings["max_prompt_tokens"],
                "threads": settings["threads"],
                "temperature": settings.get("temperature") or 1.0,
                **(engine or {"with": {"batch_size": settings["batch_size"]}}),
            },
            "environments": [environment],
            "hosting": hosting or HostingSection(),
        }
    )
