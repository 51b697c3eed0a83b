"""Tiny real distributions: dist-info directories and modules in a directory on sys.path."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent

import pytest

HEAD = """
from prime_core.api import *
from prime_core.hub.kinds import KINDS
class Exact:
    def verify(self, task, completion):
        return Score(1.0)
def make(params, context):
    return Exact()
def spec(name, **more):
    return VerifierSpec(name=name, factory=make, summary="a test's verifier", **more)
"""


class Site:
    """A directory of distributions that a test installs."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.modules: list[str] = []

    def install(
        self,
        distribution: str,
        entry_points: Mapping[str, str],
        modules: Mapping[str, str] | None = None,
        *,
        version: str = "1.0",
        requires: Sequence[str] = ("prime-core>=0.1",),
    ) -> None:
        """Write one distribution; `modules` maps names to source, after HEAD."""
        info = self.root / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        lines += ["Summary: made by a test", *(f"Requires-Dist: {each}" for each in requires)]
        (info / "METADATA").write_text("\n".join(lines) + "\n")
        rows = "\n".join(f"{name} = {value}" for name, value in entry_points.items())
        (info / "entry_points.txt").write_text(f"[prime_core]\n{rows}\n")
        for name, source in (modules or {}).items():
            (self.root / f"{name}.py").write_text(HEAD + dedent(source))
            self.modules.append(name)

    def verifier(self, distribution: str, name: str, module: str, **more: str) -> None:
        """A distribution with one good verifier."""
        source = f"""
        @hookimpl
        def prime_verifiers():
            return [spec({name!r})]
        """
        self.install(distribution, {f"verifier.{name}": module}, {module: source}, **more)

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`prime-core ARGUMENTS` with this directory on the path."""
        environ = {**os.environ, "PYTHONPATH": str(self.root), "COLUMNS": "80"}
        command = [sys.executable, "-m", "prime_core", *arguments]
        return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120)

    def json(self, *arguments: str) -> dict:
        """The JSON that a command prints."""
        done = self.run(*arguments, "--json")
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def site(tmp_path: Path) -> Site:
    """An empty directory of distributions, not on this process's path."""
    root = tmp_path / "site"
    root.mkdir()
    return Site(root)


@pytest.fixture
def on_path(site: Site, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Puts the site on this process's path and its modules out of it afterwards."""
    monkeypatch.syspath_prepend(str(site.root))
    yield
    for name in site.modules:
        sys.modules.pop(name, None)
