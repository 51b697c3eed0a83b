"""Entries of a run's folders that no process of the run wrote: never read, never waited on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prime_core.api.errors import FormatError
from prime_core.store import layout
from prime_core.store.objects import ObjectMissingError, ObjectStore
from prime_core.store.view import members, step_numbers

FOLDER = "steps/000000/submissions"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / FOLDER
    made.mkdir(parents=True)
    (made / "worker-0-00000.parquet").write_bytes(b"whole")
    return made


@pytest.mark.parametrize("kind", ["dangling", "loop", "fifo", "device", "folder"])
def test_an_entry_that_is_no_file_is_neither_listed_nor_read(
    tmp_path: Path, folder: Path, kind: str
) -> None:
    odd = folder / "worker-9-00000.parquet"
    if kind == "fifo":
        os.mkfifo(odd)
    elif kind == "folder":
        odd.mkdir()
    else:
        odd.symlink_to({"dangling": "/nonexistent", "loop": odd, "device": "/dev/zero"}[kind])
    store = ObjectStore(str(tmp_path))
    assert store.list(FOLDER) == ["worker-0-00000.parquet"]
    assert not store.exists(f"{FOLDER}/{odd.name}")
    with pytest.raises(ObjectMissingError):
        store.get(f"{FOLDER}/{odd.name}", 1000)


def test_a_link_to_a_file_is_an_object_within_the_limit(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "elsewhere").write_bytes(b"12345")
    (folder / "worker-1-00000.parquet").symlink_to(tmp_path / "elsewhere")
    store = ObjectStore(str(tmp_path))
    assert store.get(f"{FOLDER}/worker-1-00000.parquet", 5) == b"12345"
    with pytest.raises(FormatError, match="more than 4 bytes"):
        store.get(f"{FOLDER}/worker-1-00000.parquet", 4)


def test_only_names_with_the_folder_s_ending_are_members(tmp_path: Path, folder: Path) -> None:
    (folder / "worker-1-00000.json").write_bytes(b"{}")
    dispatches = tmp_path / layout.dispatches_dir(0)
    dispatches.mkdir()
    (dispatches / "worker-0-00000.json").write_bytes(b"{}")
    (dispatches / "worker-0-00001.parquet").write_bytes(b"{}")
    store = ObjectStore(str(tmp_path))
    assert list(members(store, layout.submissions_dir(0), 0)) == [(0, "worker-0", 0)]
    assert list(members(store, layout.dispatches_dir(0), 0)) == [(0, "worker-0", 0)]


def test_numbers_that_no_record_can_hold_are_no_members(tmp_path: Path, folder: Path) -> None:
    (folder / f"worker-1-{2**31}.parquet").write_bytes(b"")
    (tmp_path / f"steps/{2**31}").mkdir()
    store = ObjectStore(str(tmp_path))
    assert list(members(store, layout.submissions_dir(0), 0)) == [(0, "worker-0", 0)]
    assert step_numbers(store) == [0]
    assert layout.parse_member(f"worker-1-{2**31 - 1}.json") == ("worker-1", 2**31 - 1)
