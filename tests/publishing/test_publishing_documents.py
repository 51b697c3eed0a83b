"""The pages on publishing are programs, and name every field there is."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from prime_core.publishing.publication import Owner, Publication, Yank

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.integration
def test_every_command_of_the_guide_runs(tmp_path):
    text = (DOCS / "how-to/publish.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```sh run\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    for wanted in ("published prime-env-letters 0.1.0 at level bronze", "0 problems", "no drift"):
        assert wanted in done.stdout
    assert (tmp_path / "copy/index.html").is_file()


@pytest.mark.parametrize("statement", [Publication, Owner, Yank])
def test_the_reference_names_every_field(statement):
    text = (DOCS / "reference/index-format.md").read_text(encoding="utf-8")
    for name in statement.model_fields.keys() - {"format"}:
        assert f"`{name}`" in text, name
    assert statement.model_fields["format"].default in text
