"""What starting costs: which modules are loaded before anything is asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("torch", "transformers", "vllm", "sympy", "pyarrow", "rich", "pydantic")


def loaded(code: str) -> set[str]:
    """Top-level modules that are loaded after `code`, in a fresh interpreter."""
    tail = "\nimport sys; print('LOADED', *{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run(
        [sys.executable, "-c", code + tail], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


def command(*arguments: str) -> str:
    """Code that runs a `prime-core` command in its process and goes on after it."""
    return (
        f"import sys; sys.argv = ['prime-core', *{list(arguments)!r}]\n"
        "from prime_core.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
    )


def test_importing_the_package_loads_nothing():
    assert loaded("import prime_core").isdisjoint({*HEAVY, "click", "numpy", "pluggy"})


@pytest.mark.parametrize("arguments", [("--help",), ("-h",), ("--version",)])
def test_help_loads_click_and_nothing_else(arguments):
    found = loaded(command(*arguments))
    assert "click" in found
    assert found.isdisjoint({*HEAVY, "numpy", "pluggy"})


def test_the_api_and_the_hub_load_nothing_heavy():
    heavy = {"torch", "transformers", "vllm", "sympy", "pyarrow", "rich", "numpy"}
    assert loaded("import prime_core.api, prime_core.config, prime_core.hub").isdisjoint(heavy)


@pytest.mark.parametrize(
    "arguments",
    [
        ("plugins", "list"),
        ("plugins", "show", "environment.arithmetick"),
        ("plugins", "show", "grpo"),
        ("plugins", "show", "inference_engine.transformers"),
    ],
)
def test_looking_at_plugins_loads_nothing_heavy(arguments):
    heavy = {"torch", "transformers", "vllm", "sympy", "pyarrow", "rich"}
    assert loaded(command(*arguments)).isdisjoint(heavy)


def test_starting_pytest_loads_nothing_of_ours(tmp_path: Path):
    """Authors' coverage would miss what a pytest plugin imports before it starts."""
    test = tmp_path / "test_probe_of_start.py"
    test.write_text(
        "import sys\n"
        "def test_it():\n"
        "    ours = [n for n in sys.modules if n.partition('.')[0] == 'prime_core']\n"
        "    assert sorted(ours) == ['prime_core', 'prime_core.testing', "
        "'prime_core.testing.pytest_plugin'], ours\n"
        f"    assert not set({HEAVY[:-2]!r}) & set(sys.modules)\n"
    )
    arguments = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(test)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
