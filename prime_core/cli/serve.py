"""`prime-core serve`: a model behind an OpenAI-compatible endpoint, on our inference engine."""

from __future__ import annotations

from pathlib import Path

import click


@click.command()
@click.option("--model", required=True, metavar="PATH",
              help="Model directory, package:NAME, or a run (its newest policy).")  # fmt: skip
@click.option("--version", type=click.IntRange(min=0), help="Policy version of a run.")
@click.option("--gguf", metavar="FILE", help="GGUF file inside the model's directory.")
@click.option("--name", metavar="NAME", help="What clients call it; default: the directory's name.")
@click.option("--host", default="127.0.0.1", show_default=True,
              help="Address to listen on; others than loopback need --api-key-file.")  # fmt: skip
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True,
              help="Port; 0 takes a free one.")  # fmt: skip
@click.option("--api-key-file", type=click.Path(path_type=Path, dir_okay=False, exists=True),
              help="File with the key that clients must show.")  # fmt: skip
@click.option("--dtype", type=click.Choice(["float32", "bfloat16"]), default="float32",
              show_default=True, help="Dtype of the weights.")  # fmt: skip
@click.option("--max-tokens", type=click.IntRange(min=1),
              help="Token limit of any completion; default: the model's context.")  # fmt: skip
@click.option("--batch-size", type=click.IntRange(min=1), default=32, show_default=True,
              help="Completions generated together.")  # fmt: skip
@click.option("--threads", type=click.IntRange(min=1), default=1, show_default=True,
              help="Torch threads.")  # fmt: skip
@click.option("--chat-template", type=click.Path(path_type=Path, dir_okay=False, exists=True),
              help="File that replaces the tokenizer's chat template.")  # fmt: skip
def serve(
    model: str,
    version: int | None,
    gguf: str | None,
    name: str | None,
    host: str,
    port: int,
    api_key_file: Path | None,
    dtype: str,
    max_tokens: int | None,
    batch_size: int,
    threads: int,
    chat_template: Path | None,
) -> None:
    """Serve a model at /v1/completions and /v1/chat/completions, as OpenAI's clients expect."""
    from prime_core.run.preparing import check_installed

    check_installed("serve", ("torch", "transformers", "starlette", "uvicorn"))
    from prime_core.config.load import load_run
    from prime_core.config.sections import EngineSection, ModelSection
    from prime_core.evaluation import policies
    from prime_core.evaluation.serving.opening import Listening, open_desk
    from prime_core.evaluation.serving.opening import serve as serve_desk

    key = "" if api_key_file is None else api_key_file.read_text(encoding="utf-8").strip()
    if api_key_file is not None and not key:
        raise click.BadParameter("the file is empty", param_hint="--api-key-file")
    listening = Listening(host, port, key)
    listening.check()
    template = None if chat_template is None else chat_template.read_text(encoding="utf-8")
    if (Path(model) / "run.toml").is_file():
        config = load_run(policies.run_toml(Path(model)))
        policy = policies.policy_of_run(config, version)
        template, dtype = template or config.model.chat_template, config.model.dtype
    elif version is not None:
        raise click.UsageError("--version needs a run")
    else:
        section = ModelSection.model_validate({"path": model, "gguf": gguf, "dtype": dtype})
        policy, _ = policies.policy_of_model(section)
    engine = EngineSection.model_validate({"threads": threads, "with": {"batch_size": batch_size}})
    desk = open_desk(
        policy,
        engine,
        dtype=dtype,
        name=name or Path(model.removeprefix("package:")).resolve().name,
        chat_template=template,
        max_tokens=max_tokens,
    )
    serve_desk(desk, listening, click.echo)
