"""Staged roots are removed when nobody used them for a day, and never while somebody does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from prime_core.api.jails import leases

OLD, NEW = f"python-3.11.2-{0:016x}", f"python-3.11.2-{1:016x}"


def make(folder: Path, name: str, *, days_old: float) -> Path:
    made = folder / name
    (made / "root" / "py").mkdir(parents=True)
    (made / "root" / "py" / "python3").write_text("x")
    manifest = made / leases.MANIFEST
    manifest.write_text("{}")
    then = manifest.stat().st_mtime - days_old * 86400
    for path in (manifest, made):
        os.utime(path, (then, then))
    return made


def test_a_root_that_nobody_used_for_a_day_is_removed(tmp_path: Path) -> None:
    make(tmp_path, NEW, days_old=9)
    old, young = make(tmp_path, OLD, days_old=2), make(tmp_path, OLD[:-1] + "7", days_old=0.5)
    half = make(tmp_path, f"{leases.TEMPORARY}x", days_old=2)
    strangers = [make(tmp_path, "python-mine", days_old=99), tmp_path / "file", tmp_path / "link"]
    strangers[1].write_text("x")
    strangers[2].symlink_to(strangers[0])
    assert leases.prune(tmp_path, NEW) == 2
    assert not old.exists()
    assert not half.exists()
    assert {path.name for path in tmp_path.iterdir()} == {
        *(NEW, young.name),
        *(path.name for path in strangers),
    }


def test_a_root_that_is_held_stays_and_counts_as_used(tmp_path: Path) -> None:
    old = make(tmp_path, OLD, days_old=2)
    lease = leases.take(old)
    assert lease is not None
    os.utime(old / leases.MANIFEST, (0, 0))
    assert leases.prune(tmp_path, NEW) == 0
    lease.close()
    assert leases.prune(tmp_path, NEW) == 1
    old = make(tmp_path, OLD, days_old=2)
    found = leases.take(old)
    assert found is not None
    found.close()
    assert leases.prune(tmp_path, NEW) == 0, "it was taken a moment ago"


HOLDER = """
import sys
from pathlib import Path
from prime_core.api.jails import leases
lease = leases.take(Path(sys.argv[1]))
print(lease is not None, flush=True)
sys.stdin.readline()
"""


def test_another_process_that_was_killed_holds_nothing(tmp_path: Path) -> None:
    old = make(tmp_path, OLD, days_old=2)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(old)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "True\n"
    os.utime(old / leases.MANIFEST, (0, 0))
    assert leases.prune(tmp_path, NEW) == 0
    holder.kill()
    holder.communicate()
    assert leases.prune(tmp_path, NEW) == 1


def test_nothing_is_held_of_what_is_not_there_or_goes_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert leases.take(tmp_path / OLD) is None
    old = make(tmp_path, OLD, days_old=2)
    lock = leases.fcntl.flock

    def lock_late(descriptor: int, how: int) -> None:
        shutil.rmtree(old)
        lock(descriptor, how)

    monkeypatch.setattr(leases.fcntl, "flock", lock_late)
    assert leases.take(old) is None


def test_without_locks_nothing_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make(tmp_path, OLD, days_old=2)

    def refuse(descriptor: int, how: int) -> None:
        raise OSError("no locks here")

    monkeypatch.setattr(leases.fcntl, "flock", refuse)
    lease = leases.take(old)
    assert lease is not None
    lease.close()
    assert leases.prune(tmp_path, NEW) == 0
