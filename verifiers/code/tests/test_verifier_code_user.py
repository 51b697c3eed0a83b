"""The labelled cases as an ordinary user, through the command line: no root, no cgroups."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[4] / "shared"))
CASES = SHARED / "cases" / "code_cases.jsonl"
USER = 54321
STEP = 6  # the normal run takes each sixth case


def interpreter() -> str | None:
    """A Python of our version that other users may run; ours may lie under a closed home."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for path in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        if subprocess.run([*as_user(), path, "-c", ""], capture_output=True).returncode == 0:
            return path
    return None


def as_user() -> list[str]:
    # `env` in between: setpriv itself still has root's capabilities while it looks for a program.
    return ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", "env"]


def processes() -> list[str]:
    """Processes of the user, whatever their parents."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            try:
                if path.stat().st_uid == USER:
                    found.append((path / "cmdline").read_text())
            except OSError:
                continue
    return found


@pytest.mark.integration
@pytest.mark.parametrize("step", [STEP, pytest.param(1, marks=pytest.mark.slow)])
def test_an_ordinary_user_gets_the_same_verdicts_and_leaves_nothing(
    step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    if os.geteuid() != 0:
        pytest.skip("this test becomes another user, which takes root")
    if not CASES.is_file():
        pytest.skip("the shared cases aren't here; set PRIME_SHARED to their folder")
    python = interpreter()
    if python is None:
        pytest.skip("no interpreter of this version may be run by other users")
    # pytest's own folders are closed to other users.
    folder = Path(tmp_path_factory.getbasetemp().parent.parent) / f"prime-code-user-{os.getpid()}"
    folder.mkdir(mode=0o755)
    os.chown(folder, USER, USER)
    try:
        rows = CASES.read_text(encoding="utf-8").splitlines()[::step]
        (folder / "cases.jsonl").write_text("\n".join(rows), encoding="utf-8")
        command = [*as_user(), python, "-m", "prime_core.cli.main", "verify", "code", "--json"]
        done = subprocess.run(
            [*command, "--cases", str(folder / "cases.jsonl"), "--time-limit", "120"],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "PRIME_CORE_CACHE": str(folder / "cache"),
                "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
            },
            cwd=folder,
            capture_output=True,
            text=True,
        )
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    expected = {row["id"]: row["expected_reward"] for row in map(json.loads, rows)}
    assert {line["id"]: line["value"] for line in lines} == expected
    levels = {line["isolation"]["level"] for line in lines}
    assert levels in ({"namespaces"}, {"cgroups"})
    assert processes() == []
