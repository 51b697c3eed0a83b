"""Loads a model and serves it until it is told to stop; called by `prime-core serve`."""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

from prime_core.api import PolicyFiles, RunError
from prime_core.config.sections import EngineSection
from prime_core.evaluation.serving.desk import Desk, ModelFacts

GRACE_S = 5  # how long answers may go on once the server is told to stop


@dataclass(frozen=True)
class Listening:
    """Where the server listens, and to whom.

    Attributes:
        port: 0 takes a free one.
        api_key: clients must show it; "" asks for none, which only loopback addresses may.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    api_key: str = ""

    @property
    def loopback(self) -> bool:
        """Only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False

    def check(self) -> None:
        """Refuse to be open to everyone; before a model is loaded.

        Raises:
            RunError: others than this machine could use the server without a key.
        """
        if not self.loopback and not self.api_key:
            raise RunError(
                f"{self.host} can be reached from elsewhere, and no key is asked for",
                where="--host",
                fix="give --api-key-file, or listen on 127.0.0.1",
            )


def open_desk(
    policy: PolicyFiles,
    engine: EngineSection,
    *,
    dtype: str,
    name: str,
    chat_template: str | None = None,
    max_tokens: int | None = None,
) -> Desk:
    """Load the model into the engine.

    Raises:
        PrimeError: the engine or the model can't be used.
    """
    from prime_core.engines.model_files import load_tokenizer
    from prime_core.engines.opening import engine_choice
    from prime_core.hub import Hub, RunContext

    hub = Hub.discover()
    fields = hub.spec("inference_engine", engine.use, engine.version).params.model_fields
    choice = engine_choice(engine, dtype, set(fields))
    tokenizer = load_tokenizer(policy.model_dir, chat_template)
    context, vocabulary = _limits(policy.model_dir, len(tokenizer))
    made = hub.make("inference_engine", choice, RunContext.from_environment())
    try:
        made.load(policy)
    except BaseException:
        made.close()
        raise
    facts = ModelFacts(name, context, vocabulary, max_tokens)
    return Desk(made, tokenizer, facts, batch_size=engine.params.get("batch_size", 32))


def serve(desk: Desk, listening: Listening, tell: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM; blocks.

    Raises:
        RunError: the address can't be listened on; or see `Listening.check`.
    """
    import uvicorn

    from prime_core.evaluation.serving.app import make_app

    listening.check()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    app = make_app(desk, api_key=listening.api_key, loopback=listening.loopback)
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_S,
        )
    )
    with _listen(listening) as bound:
        host = f"[{listening.host}]" if ":" in listening.host else listening.host
        tell(f"serving {desk.facts.name} at http://{host}:{bound.getsockname()[1]}/v1")
        try:
            server.run(sockets=[bound])
        except KeyboardInterrupt:
            tell("stopped")  # uvicorn raises it again once everything is down


def _listen(listening: Listening) -> socket.socket:
    family = socket.AF_INET6 if ":" in listening.host else socket.AF_INET
    bound = socket.socket(family)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind((listening.host, listening.port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        raise RunError(
            f"can't listen on {listening.host}:{listening.port}: {error.strerror}",
            fix="choose another --port; 0 takes a free one",
        ) from error
    return bound


def _limits(model_dir: Path, tokens: int) -> tuple[int | None, int]:
    """Context length and vocabulary size, as config.json has them."""
    config = json.loads((model_dir / "config.json").read_text(encoding="utf-8"))
    config = {**config, **config.get("text_config", {})}
    return config.get("max_position_embeddings"), config.get("vocab_size", tokens)
