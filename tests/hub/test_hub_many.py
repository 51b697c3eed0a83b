"""A hundred installed distributions are listed without importing one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

COUNT = 100


def test_a_hundred_distributions_are_listed_and_none_is_imported(tmp_path: Path) -> None:
    for n in range(COUNT):
        (tmp_path / f"prime_env_some_{n}.py").write_text("raise SystemExit('imported')\n")
        info = tmp_path / f"prime_env_some_{n}-1.{n}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.4\nName: prime-env-some-{n}\nVersion: 1.{n}\n"
            "Requires-Dist: prime-core<1,>=0.1\n"
        )
        (info / "entry_points.txt").write_text(
            f"[prime_core]\nenvironment.some_{n} = prime_env_some_{n}\n"
        )
    done = subprocess.run(
        [sys.executable, "-m", "prime_core", "plugins", "list"],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    for n in range(COUNT):
        assert f" prime-env-some-{n} 1.{n}\n" in done.stdout
