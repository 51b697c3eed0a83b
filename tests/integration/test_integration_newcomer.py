"""README's road from an idea to a run: its files, edits and commands, and what they print."""

from __future__ import annotations

import os
import re
import string
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from prime_core.engines.tiny_model import build_tiny_model

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.integration


def blocks() -> list[tuple[str, str, str]]:
    """(language, info, text) of the section's blocks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## From an idea to a run\n")[2].partition("\n## ")[0]
    return BLOCK.findall(section)


def run(folder: Path, script: str, standard_input: str = "") -> str:
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PRIME_CORE_CACHE": str(folder / "cache"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_EXTRA_INDEX_URL": "",
        "OMP_NUM_THREADS": "1",
    }
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=environment,
        input=standard_input,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}"
    return done.stdout


def assert_shown(text: str, printed: str) -> None:
    """Every part of a text block between dots was printed so, in this order."""
    at = 0
    for part in re.split(r"^\.\.\.\n", text, flags=re.MULTILINE):
        found = printed.find(part, at)
        assert found >= 0, f"{part}\nisn't in\n{printed}"
        at = found + len(part)


def play(folder: Path, until: str = "") -> int:
    """Do what the section says, up to the command that begins so; returns the blocks played."""
    printed, played = "", 0
    for language, info, text in blocks():
        if until and text.startswith(until):
            break
        played += 1
        if info == "apply":
            said = run(folder, "git apply -v -", text)
            assert "offset" not in said, said  # the line numbers are the file's own
        elif info == "run":
            printed = run(folder, text)
        elif info.startswith("file="):
            (folder / info.removeprefix("file=")).write_text(text, encoding="utf-8")
        elif language == "text":
            assert_shown(text, printed)
        else:
            install_prime_core(folder / "other")
    return played


def install_prime_core(environment: Path) -> None:
    """What `pip install 'prime-core[demo]'` does where there is an index of everything."""
    site = next(environment.glob("lib/python*/site-packages"))
    ours = sysconfig.get_paths()["purelib"]
    (site / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")


def test_red_green_and_published(tmp_path: Path) -> None:
    assert play(tmp_path, until="python -m venv") == 8
    assert (tmp_path / "hub/simple/prime-env-letters/index.html").is_file()


@pytest.mark.slow
def test_the_whole_road_ends_in_a_run(tmp_path: Path) -> None:
    build_tiny_model(
        tmp_path / "models/my-model",
        symbols=(*string.printable[:95], "\n"),
        initializer_range=0.05,
        max_positions=4096,
    )
    assert play(tmp_path) == len(blocks())
    assert list(tmp_path.glob("runs/*/closed.json")) or list(tmp_path.glob("runs/*/lock.json"))
