"""The pages that show plugin code: their files work as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BLOCK = re.compile(r"^```python\n# (\S+\.py)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def write_files(page: str, folder: Path) -> list[str]:
    """Write the files that a page shows; returns their names."""
    found = BLOCK.findall((ROOT / page).read_text())
    for name, source in found:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return [name for name, _ in found]


@pytest.mark.integration
def test_the_tests_that_the_how_to_shows_pass(tmp_path):
    names = write_files("docs/how-to/test-a-plugin.md", tmp_path)
    assert names == ["prime_verifier_parity.py", "test_parity.py", "test_parity_hub.py"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "9 passed" in done.stdout


def test_the_plugin_that_the_reference_shows_is_loaded(tmp_path, monkeypatch, isolated_hub):
    from prime_core.hub.records import PluginRecord

    assert write_files("docs/reference/hooks.md", tmp_path) == ["prime_verifier_parity/__init__.py"]
    monkeypatch.syspath_prepend(str(tmp_path))
    isolated_hub.add(
        [
            PluginRecord(
                "verifier", "parity", "prime_verifier_parity", "prime-verifier-parity", "1", ""
            )
        ]
    )
    try:
        assert isolated_hub.spec("verifier", "parity").summary == "even or odd"
    finally:
        sys.modules.pop("prime_verifier_parity", None)
