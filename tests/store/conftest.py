"""Fixtures of tests over policy versions and stores."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from policy_files import WEIGHTS

from prime_core.store.objects import ObjectStore


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(WEIGHTS)
    return path


@pytest.fixture(params=["directory", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "memory":
        return ObjectStore(f"memory://{uuid.uuid4().hex}")
    return ObjectStore(str(tmp_path / "run"))
