"""The folder `verifiers/` of the repository never hides the package `verifiers` of others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("folder", ["verifiers", "environments", "plugins"])
def test_member_folders_are_no_packages(folder):
    assert not (ROOT / folder / "__init__.py").exists()


def test_a_regular_package_behind_ours_on_the_path_wins(tmp_path):
    package = tmp_path / "verifiers"
    package.mkdir()
    (package / "__init__.py").write_text("MINE = 'the regular package'\n")
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]\n"
        "import prime_core.hub; prime_core.hub.Hub.discover()\n"
        "import verifiers; print(verifiers.MINE)"
    )
    command = [sys.executable, "-c", code, str(ROOT), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=60)
    assert done.stdout.strip() == "the regular package", done.stderr
