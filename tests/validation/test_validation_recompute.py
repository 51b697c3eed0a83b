"""Whose fault it is that a forward pass can't be had: the engine's or the row's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from prime_core.api import EngineError, IntegrityError, StoreError
from prime_core.testing.toy_submission import toy_submission
from prime_core.validation.recompute import Recomputer

DIGEST = bytes(32)


class OutOfMemoryError(RuntimeError):
    """As torch's is named."""


class Engine:
    """Raises what it is told, when it loads or in its forward pass."""

    capabilities = SimpleNamespace(name="toy")

    def __init__(self, *, load=None, prefill=None, digest=DIGEST):
        self.errors, self.digest, self.loads = (load, prefill), digest, 0

    def load(self, policy):
        self.loads += 1
        if self.errors[0]:
            raise self.errors[0]
        return self.digest

    def prefill(self, requests):
        raise self.errors[1]


def computing(engine: Engine) -> Recomputer:
    return Recomputer(
        run_id="r",
        engine=engine,  # type: ignore[arg-type]
        fetch=lambda version: SimpleNamespace(digest=DIGEST),  # type: ignore[arg-type,return-value]
        seal=bytes,
        shares=(),
        planner_of=lambda node_class: None,  # type: ignore[arg-type,return-value]
        rescorer=None,  # type: ignore[arg-type]
        loop=None,  # type: ignore[arg-type]
        temperature=1.0,
    )


@pytest.mark.parametrize(
    "engine",
    [
        Engine(load=EngineError("no memory for the weights", where="engine toy")),
        Engine(load=IntegrityError("damaged")),
        Engine(digest=b"other"),
        Engine(prefill=EngineError("vLLM died", where="engine toy")),
        Engine(prefill=MemoryError()),
        Engine(prefill=OutOfMemoryError("CUDA out of memory")),
    ],
)
def test_an_engine_that_dies_is_no_rows_fault_and_loads_anew(engine: Engine) -> None:
    recomputer = computing(engine)
    for _ in range(2):
        with pytest.raises(StoreError, match="engine"):
            recomputer.compute(1, toy_submission()[0].rows)
    assert engine.loads == 2


@pytest.mark.parametrize(
    "error", [EngineError("99 tokens exceed the context", where="prefill"), ValueError("odd")]
)
def test_what_an_engine_says_of_a_row_is_the_rows(error: Exception) -> None:
    with pytest.raises(type(error)):
        computing(Engine(prefill=error)).compute(1, toy_submission()[0].rows)
