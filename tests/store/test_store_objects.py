from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prime_core.api.errors import FormatError, StoreError
from prime_core.store.objects import ObjectExistsError, ObjectMissingError, ObjectStore


@pytest.fixture(params=["directory", "file", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    urls = {
        "directory": str(tmp_path / "run"),
        "file": f"file://{tmp_path}/run",
        "memory": f"memory://{uuid.uuid4().hex}",
    }
    return ObjectStore(urls[request.param])


def test_an_object_reads_back(store: ObjectStore) -> None:
    store.put("a/b/c.bin", b"one")
    assert store.get("a/b/c.bin") == b"one"
    assert store.exists("a/b/c.bin")
    assert not store.exists("a/b")
    assert not store.exists("a/b/d.bin")


def test_an_object_is_written_once(store: ObjectStore) -> None:
    store.put("a/x", b"one")
    with pytest.raises(ObjectExistsError, match="never overwritten"):
        store.put("a/x", b"two")
    assert store.get("a/x") == b"one"
    assert not store.put_same("a/x", b"one")
    assert store.put_same("a/y", b"two")
    with pytest.raises(ObjectExistsError, match="other bytes"):
        store.put_same("a/x", b"two")


def test_one_of_many_writers_wins(store: ObjectStore) -> None:
    def attempt(n: int) -> bool:
        try:
            store.put("race/x", str(n).encode())
        except ObjectExistsError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        won = [n for n, ok in enumerate(pool.map(attempt, range(32))) if ok]
    assert len(won) == 1
    assert store.get("race/x") == str(won[0]).encode()
    assert store.list("race") == ["x"]


def test_a_file_is_copied_not_linked(store: ObjectStore, tmp_path: Path) -> None:
    local = tmp_path / "weights"
    local.write_bytes(b"w" * 3_000_000)
    store.put_file("p/weights.bin", local)
    local.write_bytes(b"changed")
    assert store.get("p/weights.bin") == b"w" * 3_000_000


def test_missing_and_too_large_are_told_apart(store: ObjectStore) -> None:
    with pytest.raises(ObjectMissingError):
        store.get("nothing/here")
    store.put("big", b"12345")
    assert store.get("big", limit=5) == b"12345"
    with pytest.raises(FormatError, match="more than 4 bytes"):
        store.get("big", limit=4)


def test_an_empty_object_is_an_object(store: ObjectStore) -> None:
    store.put("empty", b"")
    assert store.get("empty", limit=0) == b""


def test_listings_hold_objects_directly_under_the_prefix(store: ObjectStore) -> None:
    for path in ("steps/1/b", "steps/1/a", "steps/1/deep/c", "steps/2/d"):
        store.put(path, b"")
    assert store.list("steps/1") == ["a", "b"]
    assert store.list("steps/1/") == ["a", "b"]
    assert store.folders("steps") == ["1", "2"]
    assert store.folders("steps/1") == ["deep"]
    assert store.list("steps/3") == []
    assert store.folders("nowhere") == []


@pytest.mark.parametrize("path", ["../x", "/x", "a/../../x", ".tmp-x", ""])
def test_names_outside_the_store_are_refused(store: ObjectStore, path: str) -> None:
    for act in (lambda: store.put(path, b""), lambda: store.get(path), lambda: store.exists(path)):
        with pytest.raises(StoreError, match="can't name an object"):
            act()


def test_local_paths_exist_only_for_directories(tmp_path: Path) -> None:
    assert ObjectStore(str(tmp_path)).local_path("a/b") == tmp_path / "a/b"
    assert ObjectStore(f"file://{tmp_path}").local_path("a/b") == tmp_path / "a/b"
    assert ObjectStore("memory://x").local_path("a/b") is None


@pytest.mark.parametrize("url", ["http://example.org/run", "ftp://host/run", "zip://x.zip"])
def test_storage_without_conditional_put_is_refused_at_open(url: str) -> None:
    with pytest.raises(StoreError, match="no conditional put") as caught:
        ObjectStore(url)
    assert caught.value.fix


def test_a_file_url_with_a_host_is_refused() -> None:
    with pytest.raises(StoreError, match="names a host"):
        ObjectStore("file://host/dir")


def test_temporary_names_are_never_listed_and_swept_when_their_writer_is_gone(
    tmp_path: Path,
) -> None:
    from prime_core.store import backends

    store = ObjectStore(str(tmp_path))
    store.put("a/x", b"1")
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    dead = tmp_path / "a" / f"{backends.TEMPORARY}{backends._machine()}-{gone.pid}-ff"
    live = tmp_path / "a" / f"{backends.TEMPORARY}{backends._machine()}-{os.getpid()}-ff"
    other = tmp_path / "a" / f"{backends.TEMPORARY}00000000-1-ff"
    for path in (dead, live, other):
        path.write_bytes(b"half")
    assert store.list("a") == ["x"]
    assert store.sweep() == 1
    assert not dead.exists()
    assert live.exists()
    assert other.exists()


WRITER = """
import sys
from prime_core.store.objects import ObjectStore
store = ObjectStore(sys.argv[1])
n = int(sys.argv[2])
while True:
    store.put(f"out/{n:06d}", (b"%06d" % n) * 200_000)
    n += 1
"""


@pytest.mark.integration
def test_a_killed_writer_leaves_no_partial_object(tmp_path: Path) -> None:
    store = ObjectStore(str(tmp_path))
    for attempt in range(8):
        first = attempt * 1000
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), str(first)])
        while not store.exists(f"out/{first:06d}"):
            assert writer.poll() is None
            time.sleep(0.002)
        time.sleep(0.0037 * attempt)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        for name in store.list("out"):
            assert store.get(f"out/{name}") == name.encode() * 200_000
    store.sweep()
    assert list((tmp_path / "out").glob(".*")) == []


LIMITED = """
import resource, sys
from prime_core.api.errors import StoreError
from prime_core.store.objects import ObjectStore
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
store = ObjectStore(sys.argv[1])
store.put("a/small", b"x" * 100)
try:
    store.put("a/large", b"x" * 100_000)
except StoreError as error:
    print(error)
"""


@pytest.mark.integration
def test_a_write_that_fails_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert "a/large: object can't be written" in done.stdout
    assert "fix: the file size limit is too low" in done.stdout
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["small"]


def test_a_file_in_the_way_of_a_directory_says_so(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    store = ObjectStore(str(tmp_path))
    with pytest.raises(StoreError, match="can't be written") as caught:
        store.put("a/b/c", b"")
    assert caught.value.fix
    assert not store.exists("a/b")
    with pytest.raises(ObjectMissingError):
        store.get("a/b")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_directory_without_permission_says_so(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir(mode=0o500)
    with pytest.raises(StoreError, match="permission"):
        ObjectStore(str(tmp_path / "run")).put("a", b"")
