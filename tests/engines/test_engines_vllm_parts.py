"""The parts of the engine `vllm` that need no vLLM: messages, checkpoints, noise, restarts."""

from __future__ import annotations

import json
import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from prime_core.api import EngineError, Generation, GenerationRequest
from prime_core.assignment import gumbel, gumbel_words
from prime_core.engines.vllm import checkpoints, noise
from prime_core.engines.vllm.driver import TRIES, Driver
from prime_core.engines.vllm.link import Link
from prime_core.engines.vllm.model_dirs import context_length, stop_ids
from prime_core.engines.vllm.process import Child, ChildGone
from prime_core.engines.vllm.versions import installed
from prime_core.engines.vllm.work import Generating


@pytest.fixture
def links() -> Iterator[tuple[Link, Link]]:
    """Two ends that speak with each other."""
    first_in, second_out = os.pipe()
    second_in, first_out = os.pipe()
    ends = Link(first_in, first_out), Link(second_in, second_out)
    yield ends
    for end in ends:
        end.close()


@given(
    fields=st.dictionaries(st.sampled_from("abc"), st.integers() | st.text(), max_size=3),
    blobs=st.lists(st.binary(max_size=70_000), max_size=3),
)
@settings(max_examples=40, deadline=None)
def test_a_message_arrives_as_it_was_sent(fields: dict[str, Any], blobs: list[bytes]) -> None:
    reading, writing = os.pipe()
    other_in, other_out = os.pipe()
    sender, receiver = Link(other_in, writing), Link(reading, other_out)
    sending = threading.Thread(target=sender.send, args=("kind", blobs), kwargs=fields)
    sending.start()
    header, found = receiver.receive()
    sending.join()
    assert header == {"kind": "kind", **fields}
    assert found == blobs
    sender.close()
    receiver.close()


def test_a_pipe_that_is_closed_in_mid_message_is_an_end(links: tuple[Link, Link]) -> None:
    near, far = links
    os.write(near._writing, (5).to_bytes(8, "little") + b'{"a')
    near.close()
    with pytest.raises(EOFError):
        far.receive()


@given(
    seeds=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=3),
    position=st.integers(0, 2**32 - 1),
    vocab=st.integers(1, 50),
)
@settings(max_examples=60, deadline=None)
def test_noise_in_torch_is_that_of_the_assignment(
    seeds: list[int], position: int, vocab: int
) -> None:
    rows = np.array(seeds, dtype=np.int64)
    positions = np.full(len(seeds), position, dtype=np.int64)
    tokens = np.arange(vocab)
    words = noise.gumbel_words(torch.from_numpy(rows), torch.from_numpy(positions), vocab)
    assert words.tolist() == gumbel_words(rows, positions, tokens).tolist()
    found = noise.gumbel_noise(torch.from_numpy(rows), torch.from_numpy(positions), vocab)
    np.testing.assert_allclose(found.numpy(), gumbel(rows, positions, tokens), rtol=2e-7)


def weights(path: Path, **tensors: torch.Tensor) -> Path:
    save_file(tensors, path)
    return path


def test_shapes_of_a_checkpoint(tmp_path: Path) -> None:
    path = weights(tmp_path / "a.safetensors", a=torch.zeros(2, 3), b=torch.zeros(4).bfloat16())
    assert checkpoints.shapes([path]) == {"a": ("F32", (2, 3)), "b": ("BF16", (4,))}


def test_a_tensor_in_two_files_is_refused(tmp_path: Path) -> None:
    paths = [weights(tmp_path / f"{n}.safetensors", a=torch.zeros(2)) for n in "xy"]
    with pytest.raises(EngineError, match="two files"):
        checkpoints.shapes(paths)


@given(cut=st.integers(1, 90))
@settings(max_examples=30, deadline=None)
def test_a_checkpoint_that_was_cut_is_refused(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = weights(tmp_path_factory.mktemp("cut") / "a.safetensors", a=torch.ones(7))
    data = path.read_bytes()
    path.write_bytes(data[: max(0, len(data) - cut)])
    with pytest.raises(EngineError, match="damaged"):
        checkpoints.shapes([path])


def test_other_tensors_are_refused() -> None:
    model = {"a": ("F32", (2,)), "b": ("F32", (3,))}
    checkpoints.check_same(model, dict(model), "here")
    for other in ({"a": ("F32", (2,))}, model | {"b": ("F32", (4,))}, model | {"c": ("F32", (1,))}):
        with pytest.raises(EngineError, match="tensor"):
            checkpoints.check_same(model, other, "here")


def test_a_sample_sees_small_changes_everywhere(tmp_path: Path) -> None:
    values = torch.zeros(400_000)
    first = checkpoints.sample_digest([weights(tmp_path / "a", a=values)])
    assert checkpoints.sample_digest([weights(tmp_path / "b", a=values)]) == first
    values[::50] += 1e-3  # one weight in fifty
    assert checkpoints.sample_digest([weights(tmp_path / "c", a=values)]) != first


def test_ends_and_length_come_from_the_model_directory(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="no EOS token"):
        stop_ids(tmp_path)
    (tmp_path / "config.json").write_text(
        json.dumps({"eos_token_id": 3, "max_position_embeddings": 64})
    )
    assert stop_ids(tmp_path) == {3}
    assert context_length(tmp_path) == 64
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [3, 5]}))
    assert stop_ids(tmp_path) == {3, 5}
    (tmp_path / "generation_config.json").write_text("{")
    with pytest.raises(EngineError, match="can't be read"):
        stop_ids(tmp_path)


def test_an_interpreter_without_vllm_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="can't say what it has"):
        installed(tmp_path / "python")
    other = tmp_path / "bare"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    with pytest.raises(EngineError, match="isn't installed"):
        installed(other)


class FakeChild:
    """Answers as vLLM's process does: one token a request and step, 7, 8, 9, ..., then length.

    Args:
        deaths: it dies after so many tokens of this life; None for never.
    """

    def __init__(self, deliver: Callable[[Any], None], deaths: int | None) -> None:
        self._deliver = deliver
        self._left = deaths
        self.pid = 1
        self.dead = False
        self.asked: list[dict[str, Any]] = []
        self._messages: queue.Queue[Any] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def send(self, kind: str, **fields: Any) -> None:
        if self.dead:
            raise self.gone()
        self._messages.put((kind, fields))

    def gone(self, what: str = "died") -> ChildGone:
        return ChildGone(what, where="a log", fix="read it")

    def kill(self) -> None:
        self.dead = True
        self._messages.put(None)

    close = kill

    def _run(self) -> None:
        while (message := self._messages.get()) is not None:
            kind, fields = message
            if kind == "start":
                self._deliver(({"kind": "started", "weights": "w"}, []))
            elif kind == "generate" and not self._answer(fields["requests"]):
                break
        self.dead = True
        self._deliver(None)

    def _answer(self, requests: list[dict[str, Any]]) -> bool:
        self.asked += requests
        for request in requests:
            for index in range(request["max_tokens"]):
                if self._left == 0:
                    return False
                self._left = None if self._left is None else self._left - 1
                over = "length" if index == request["max_tokens"] - 1 else ""
                token = 7 + request["position"] + index
                self._deliver(
                    ({"kind": "tokens", "tokens": [[request["key"], [token], [-0.5], 0, over]]}, [])
                )
        return True


class Lives:
    """Starts fake children, each with its own number of tokens before it dies."""

    def __init__(self, *deaths: int | None) -> None:
        self._deaths = list(deaths)
        self.children: list[FakeChild] = []

    def __call__(self, deliver: Callable[[Any], None]) -> tuple[Any, dict[str, Any]]:
        child = FakeChild(deliver, self._deaths.pop(0))
        self.children.append(child)
        return child, {}


def drive(
    driver: Driver, *, max_tokens: int = 6, count: int = 2
) -> list[Generation | BaseException]:
    ended: queue.Queue[Generation | BaseException] = queue.Queue()
    works = [
        Generating(
            key=f"g{index}",
            request=GenerationRequest(f"{index}", "0", (1, 2), 11, 3, max_tokens, 1.0),
            wants_rows=False,
            keeps_rows=False,
            done=ended.put,
        )
        for index in range(count)
    ]
    driver.begin(works)
    return [ended.get(timeout=30) for _ in works]


def test_what_was_generated_before_a_death_is_kept() -> None:
    lives = Lives(4, 5, None)
    driver = Driver(lives, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    found = drive(driver)
    driver.close()
    for each in found:
        assert isinstance(each, Generation)
        assert each.token_ids == (10, 11, 12, 13, 14, 15)
        assert len(each.logprobs) == 6
    assert driver.restarts == 2
    again = lives.children[1].asked[0]
    assert again["tokens"] == [1, 2, 10, 11, 12, 13]
    assert (again["position"], again["max_tokens"]) == (7, 2)


def test_a_vllm_that_dies_again_and_again_is_given_up() -> None:
    driver = Driver(Lives(*[0] * (TRIES + 1)), dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    found = drive(driver)
    driver.close()
    assert all(isinstance(each, ChildGone) for each in found)
    assert driver.restarts == TRIES


def test_a_load_while_requests_are_under_way_is_refused(tmp_path: Path) -> None:
    blocked = Lives(None)
    driver = Driver(blocked, dtype="float32", start_s=30, hang_s=30)
    driver.restart().result(timeout=30)
    driver._work["x"] = Generating(
        "x", GenerationRequest("x", "0", (1,), 0, 0, 1, 1.0), False, False, lambda found: None
    )
    with pytest.raises(EngineError, match="under way"):
        driver.reload(tmp_path).result(timeout=30)
    driver.close()


def test_a_process_that_ends_at_once_says_how(tmp_path: Path) -> None:
    delivered: queue.Queue[Any] = queue.Queue()
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\necho out of luck\nexit 3\n")
    script.chmod(0o755)
    child = Child(script, tmp_path / "vllm.log", {}, delivered.put)
    assert delivered.get(timeout=30) is None
    error = child.gone()
    assert "ended: 3" in error.what
    assert "out of luck" in error.what
    assert error.where == str(tmp_path / "vllm.log")


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="can't be started"):
        Child(tmp_path / "none", tmp_path / "vllm.log", {}, lambda message: None)
