"""Documents are programs: their files are written and their commands are run, word for word.

A block's info string says what it is: ```toml file=run.toml``` writes a file, ```sh run``` runs.
"""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```(\w*) ?(.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def play(document: Path, folder: Path) -> str:
    """Write a document's files and run its commands in a folder; returns what they printed."""
    printed = ""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(folder / "site"),
        "PRIME_CORE_CACHE": str(folder / "cache"),
        # `pip install ./x` lands beside the document, without a network or an index.
        "PIP_TARGET": str(folder / "site"),
        "PIP_NO_DEPS": "1",
        "PIP_NO_INDEX": "1",
        "PIP_NO_CACHE_DIR": "1",
        "PIP_NO_BUILD_ISOLATION": "0",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    for language, info, text in BLOCK.findall(document.read_text(encoding="utf-8")):
        if info.startswith("file="):
            (folder / info.removeprefix("file=")).write_text(text, encoding="utf-8")
        elif info == "run":
            assert language == "sh"
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", text],
                cwd=folder,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            assert done.returncode == 0, f"{text}\n{done.stdout}"
            printed += done.stdout
    return printed


@pytest.mark.integration
def test_the_tutorial_makes_an_environment_that_works(tmp_path: Path) -> None:
    printed = play(ROOT / "docs/tutorial/first-environment.md", tmp_path)
    assert " passed" in printed
    assert re.search(r"letters +prime-env-letters 0\.1\.0", printed)
    assert "share of the tasks held out" in printed
    assert re.search(r"loaded +environment\.letters", printed)
    assert "steps" in printed
    assert "a misspelt key is refused" in printed


@pytest.mark.integration
def test_the_data_set_guide_prints_what_it_says(tmp_path: Path) -> None:
    document = ROOT / "docs/how-to/load-a-dataset.md"
    printed = play(document, tmp_path)
    shown = [
        text for language, _, text in BLOCK.findall(document.read_text()) if language == "text"
    ]
    assert shown
    for text in shown:
        assert text in printed


@pytest.mark.integration
def test_the_guide_to_programs_shows_the_table_of_tests(tmp_path: Path) -> None:
    printed = play(ROOT / "docs/how-to/judge-code.md", tmp_path)
    assert printed.startswith("0 (scored, ")
    assert re.search(r"3 +wrong_answer", printed)
    assert '"level": "' in printed


def test_every_table_of_the_guide_to_programs_is_valid() -> None:
    from prime_env_code import CodeEnvParams

    text = (ROOT / "docs/how-to/judge-code.md").read_text(encoding="utf-8")
    for block in [block for language, _, block in BLOCK.findall(text) if language == "toml"]:
        CodeEnvParams.model_validate(tomllib.loads(block)["environments"][0]["with"])


def test_every_mapping_of_the_data_set_guide_is_valid() -> None:
    from prime_env_jsonl import JsonlParams

    text = (ROOT / "docs/how-to/load-a-dataset.md").read_text(encoding="utf-8")
    blocks = [block for language, _, block in BLOCK.findall(text) if language == "toml"]
    tables = [tomllib.loads(block)["environments"] for block in blocks]
    assert len(tables) >= 7
    for table in tables:
        choice = table[0] if isinstance(table, list) else table
        assert JsonlParams.model_validate(choice["with"]).url


@pytest.mark.parametrize(
    "member",
    [
        "environments/arithmetic",
        "environments/jsonl",
        "environments/calculator",
        "environments/code",
        "verifiers/exact",
        "verifiers/code",
        "plugins/rewards",
        "plugins/length_budgets",
        "plugins/data_filters",
        "plugins/observers",
    ],
)
def test_the_example_of_a_member_runs(member: str) -> None:
    readme = ROOT / member / "README.md"
    failed, attempted = doctest.testfile(str(readme), module_relative=False, encoding="utf-8")
    assert attempted > 0
    assert failed == 0
