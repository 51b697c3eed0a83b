"""A throw-away interpreter that holds one wheel beside everything that this one holds.

Used to look at a wheel (`card`) and to compare two versions of it (`comparing`) through environment
hosts, so that nothing of either is imported here.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from prime_core.api.errors import RunError

QUIETLY = ("--quiet", "--no-deps", "--no-index", "--disable-pip-version-check")


def interpreter_with(wheel: Path, folder: Path) -> Path:
    """An interpreter that finds the wheel first, and then all that this one finds.

    Args:
        folder: of the virtual environment, which is made.

    Raises:
        RunError: the wheel can't be installed.
    """
    venv.create(folder, with_pip=False, symlinks=True)
    site = next((folder / "lib").glob("python*/site-packages"))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", *QUIETLY, "--target", str(site), str(wheel)],
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise RunError(f"the wheel can't be installed: {done.stderr.strip()[-1000:]}")
    others = [entry for entry in sys.path if entry and Path(entry).is_dir()]
    (site / "zz_others.pth").write_text("".join(f"{entry}\n" for entry in others))
    return folder / "bin" / "python"
