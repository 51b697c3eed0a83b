"""Opens the inference engine that a run config selects; called by workers and by evaluation.

Imports no engine: the hub imports the one module that the choice names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prime_core.api.errors import RunError
from prime_core.config.sections import EngineSection, PluginChoice, RunConfig

if TYPE_CHECKING:
    from prime_core.api import Context, InferenceEngine
    from prime_core.hub import Hub


def engine_choice(engine: EngineSection, dtype: str, fields: set[str]) -> PluginChoice:
    """The plugin choice, with dtype and threads of the config where the engine has such parameters.

    A value that stands in `with` wins: it was written for this engine.

    Args:
        engine: the [engine] section.
        dtype: [model] dtype.
        fields: names of the engine's parameters.
    """
    inherited: dict[str, Any] = {"dtype": dtype, "threads": engine.threads}
    params = {name: value for name, value in inherited.items() if name in fields}
    return PluginChoice.model_validate(
        {"use": engine.use, "version": engine.version, "with": {**params, **engine.params}}
    )


def open_engine(config: RunConfig, hub: Hub, context: Context) -> InferenceEngine:
    """Make the configured engine; no policy is loaded yet.

    Raises:
        PluginError: the engine is missing, can't be imported, or refuses its parameters.
        RunError: its `max_model_len` is below what the run may ask for.
    """
    spec = hub.spec("inference_engine", config.engine.use, config.engine.version)
    choice = engine_choice(config.engine, config.model.dtype, set(spec.params.model_fields))
    _check_length(choice, config.engine)
    engine: InferenceEngine = hub.make("inference_engine", choice, context)
    return engine


def _check_length(choice: PluginChoice, section: EngineSection) -> None:
    """Refuse a length that the first long rollout would break, steps into the run."""
    longest = section.max_prompt_tokens + section.token_limit(section.node_class)
    limit = choice.params.get("max_model_len")
    if isinstance(limit, int) and limit < longest:
        raise RunError(
            f"a rollout may have {longest} tokens, but the engine's max_model_len is {limit}",
            where="[engine] with",
            fix=f"set max_model_len = {longest}, or lower max_prompt_tokens or max_tokens",
        )


def check_trainable(engine: InferenceEngine) -> None:
    """Refuse an engine whose completions can't be trained on, whatever its spec says.

    Raises:
        RunError: it returns no token ids.
    """
    capabilities = engine.capabilities
    if not capabilities.token_ids:
        raise RunError(
            f"engine {capabilities.name} returns no token ids and log-probabilities, so nothing "
            "that it says can be trained on",
            where="[engine] use",
            fix="choose another engine; measure this one with `prime-core eval`",
        )
