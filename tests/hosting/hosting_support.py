"""What the tests of environment hosts share."""

from __future__ import annotations

import asyncio
import sysconfig
import venv
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from prime_core.api import Completion
from prime_core.hosting.pool import HostPool

T = TypeVar("T")
Opened = Callable[..., Awaitable[HostPool]]


def write_distribution(
    root: Path, name: str, modules: dict[str, str], entry_points: str, version: str = "0.1"
) -> None:
    """An installed distribution in the folder `root`, without an installer."""
    info = root / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        "Requires-Dist: prime-core>=0.1,<1\n"
    )
    (info / "entry_points.txt").write_text(entry_points)
    for module, text in modules.items():
        (root / f"{module}.py").write_text(text)


def said(text: str) -> Completion:
    """A completion with this text."""
    return Completion(text)


def run(awaitable: Awaitable[T]) -> T:
    """Run to the end on a fresh loop."""

    async def wait() -> T:
        return await awaitable

    return asyncio.run(wait())


def make_interpreter(root: Path, distributions: dict[str, tuple[str, str, str, str]]) -> Path:
    """A virtual environment that sees this one's packages, and distributions of its own.

    Args:
        root: the folder to make.
        distributions: name to (version, module, its text, entry points).

    Returns:
        Its interpreter.
    """
    venv.create(root, with_pip=False, symlinks=True)
    python = root / "bin" / "python"
    paths = sysconfig.get_paths(vars={"base": str(root), "platbase": str(root)})
    packages = Path(paths["purelib"])
    ours = sysconfig.get_paths()["purelib"]
    # addsitedir, because an editable prime-core is found by a .pth file of its own.
    (packages / "ours.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
    for name, (version, module, text, entry_points) in distributions.items():
        write_distribution(packages, name, {module: text}, entry_points, version)
    return python
