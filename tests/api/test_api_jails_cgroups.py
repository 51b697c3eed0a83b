"""Groups of jails: where they are made, what is written, and what is removed.

Version 1 is also tried with real jails where the host has it. Of version 2 only the files that are
written are known here: the hierarchy is a folder, no kernel answers.
"""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from prime_core.api import Missing, SandboxError
from prime_core.api.jails import cgroups
from prime_core.api.jails.births import Births
from prime_core.api.jails.cgroups import Cgroup, CgroupPlace, find_place

REMOVE = cgroups._remove


@pytest.fixture(autouse=True)
def removal(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a kernel removes a group, whose files are no obstacle."""

    def remove(folder: Path, patience_s: float = 0.0) -> bool:
        shutil.rmtree(folder, ignore_errors=True)
        return True

    monkeypatch.setattr(cgroups, "_remove", remove)


@pytest.fixture
def hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host of version 2 in a folder; this process is in /system/job."""
    base = tmp_path / "unified"
    for folder in (base, base / "system", base / "system" / "job"):
        folder.mkdir()
        (folder / "cgroup.controllers").write_text("cpuset cpu memory pids\n")
    monkeypatch.setattr(cgroups, "_mounts", lambda: {"2": base})
    monkeypatch.setattr(cgroups, "_own_groups", lambda: {"2": "/system/job"})
    return base


def test_a_place_of_version_2_is_beside_our_own_group(hierarchy: Path) -> None:
    place = find_place()
    assert isinstance(place, CgroupPlace)
    # Not in our own: a group that has processes can't hand its controllers on.
    mine = hierarchy / "system" / f"prime-core-{os.getpid()}"
    assert (place.version, place.parents) == (2, (mine,))
    assert not [path for path in mine.iterdir() if path.is_dir()], "the trial's group is gone"


def test_a_group_of_version_2_is_limited_entered_and_asked(hierarchy: Path) -> None:
    place = find_place()
    assert isinstance(place, CgroupPlace)
    group = place.make()
    (folder,) = [path for path in place.parents[0].iterdir() if path.is_dir()]
    assert (place.parents[0] / "cgroup.subtree_control").read_text() == "+memory +pids"
    group.limit(100, 16)
    assert int((folder / "memory.max").read_text()) == (100 + cgroups.OVERHEAD_MB) << 20
    assert (folder / "pids.max").read_text() == "18"
    assert not (folder / "memory.swap.max").exists(), "this host counts no swap"
    (folder / "memory.swap.max").write_text("max")
    group.limit(100, 16)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert not group.can_be_entered, "version 2 moves whole processes"
    group.add(4711)
    assert (folder / "cgroup.procs").read_text() == "4711"
    (folder / "memory.events").write_text("low 0\nhigh 0\nmax 7\noom 3\noom_kill 2\n")
    assert group.kills() == 2
    (folder / "memory.events").write_text("low 0\n")
    assert group.kills() == 0
    group.remove()
    assert not folder.exists()


def test_a_mount_of_version_2_without_memory_is_none(hierarchy: Path) -> None:
    for path in hierarchy.rglob("cgroup.controllers"):
        path.write_text("hugetlb\n")
    place = find_place()
    assert isinstance(place, Missing)
    assert "no cgroup file system with memory and pids" in place.why


def test_a_place_that_refuses_is_told_with_its_file(
    hierarchy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: CgroupPlace) -> Cgroup:
        raise PermissionError(13, "Permission denied", str(self.parents[0]))

    monkeypatch.setattr(CgroupPlace, "make", refuse)
    place = find_place()
    assert isinstance(place, Missing)
    assert place.why.count("version 2") == 3, "our group's parent, our group, the root"
    assert "Permission denied" in place.why
    assert "Delegate=yes" in place.fix


def test_version_1_comes_first_and_needs_both_controllers(
    hierarchy: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = {"2": hierarchy, "memory": tmp_path / "memory", "pids": tmp_path / "pids"}
    for name in ("memory", "pids"):
        (mounts[name] / "job").mkdir(parents=True)
    monkeypatch.setattr(cgroups, "_mounts", lambda: mounts)
    own = {"2": "/system/job", "memory": "/job", "pids": "/job"}
    monkeypatch.setattr(cgroups, "_own_groups", lambda: own)
    place = find_place()
    assert isinstance(place, CgroupPlace)
    assert (place.version, len(place.parents)) == (1, 2)
    assert place.parents[0].parent == mounts["memory"] / "job"
    del mounts["pids"]
    place = find_place()
    assert isinstance(place, CgroupPlace)
    assert place.version == 2


def version_1(tmp_path: Path) -> tuple[CgroupPlace, Cgroup, Path, Path]:
    parents = (tmp_path / "memory", tmp_path / "pids")
    place = CgroupPlace(1, parents)
    group = place.make()
    memory, pids = (next(parent.iterdir()) for parent in parents)
    return place, group, memory, pids


def test_swap_is_limited_where_version_1_counts_it(tmp_path: Path) -> None:
    _, group, memory, pids = version_1(tmp_path)
    group.limit(64, 8)
    assert not (memory / "memory.memsw.limit_in_bytes").exists()
    (memory / "memory.memsw.limit_in_bytes").write_text("1")
    group.limit(64, 8)
    size = str((64 + cgroups.OVERHEAD_MB) << 20)
    assert (memory / "memory.memsw.limit_in_bytes").read_text() == size
    assert (memory / "memory.limit_in_bytes").read_text() == size
    assert (pids / "pids.max").read_text() == "10"
    (memory / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n")
    assert group.kills() == 1


def test_what_is_started_in_a_group_of_version_1_is_born_there(tmp_path: Path) -> None:
    place, group, memory, pids = version_1(tmp_path)
    births = Births()
    seen = births.soon(
        lambda: births.inside(group, place.make, lambda: (memory / "tasks").read_text())
    )
    assert seen.result() == "0", "a thread moves itself, which stops nobody's fork"
    assert group.entered
    lobby = next(path for path in memory.parent.iterdir() if path != memory)
    assert (lobby / "tasks").read_text() == "0", "and waits elsewhere, so that groups can go"
    assert (pids / "tasks").read_text() == "0"
    births.close()


def test_a_thread_that_may_not_move_is_an_error(tmp_path: Path) -> None:
    place, group, memory, _ = version_1(tmp_path)
    (memory / "tasks").mkdir()
    births = Births()
    with pytest.raises(SandboxError, match="can't be put into its cgroup"):
        births.soon(lambda: births.inside(group, place.make, lambda: None)).result()
    assert not group.entered
    births.close()


def test_a_group_of_a_dead_process_is_swept(tmp_path: Path) -> None:
    dead, mine = tmp_path / "prime-core-999999999", tmp_path / f"prime-core-{os.getpid()}"
    for folder in (dead / "1", mine / "1", tmp_path / "prime-core-other"):
        folder.mkdir(parents=True)
    assert cgroups.sweep(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [mine.name, "prime-core-other"]
    )


def test_leftovers_that_cannot_be_removed_cost_no_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host in a jail may not write to the hierarchy: each start waited two seconds a group."""
    dead = tmp_path / f"{cgroups.PREFIX}4194300"
    for name in ("1", "2", "3"):
        (dead / name).mkdir(parents=True)

    def refuse(self: Path) -> None:
        raise PermissionError(errno.EPERM, "not permitted", str(self))

    def wait(seconds: float) -> None:
        raise AssertionError(f"waited {seconds} s for what isn't ours")

    monkeypatch.setattr(cgroups, "_remove", REMOVE)
    monkeypatch.setattr(Path, "rmdir", refuse)
    monkeypatch.setattr(cgroups.time, "sleep", wait)
    assert cgroups.sweep(tmp_path) == 0
