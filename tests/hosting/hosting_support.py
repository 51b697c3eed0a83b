"""What the tests of environment hosts share."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from prime_core.api import Completion
from prime_core.hosting.pool import HostPool

T = TypeVar("T")
Opened = Callable[..., Awaitable[HostPool]]


def write_distribution(root: Path, name: str, modules: dict[str, str], entry_points: str) -> None:
    """An installed distribution in the folder `root`, without an installer."""
    info = root / f"{name.replace('-', '_')}-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1\nRequires-Dist: prime-core>=0.1,<1\n"
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
