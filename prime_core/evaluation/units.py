"""Work cut into numbered units, the same cut every time; what crews carry and journals remember."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unit:
    """Some items of work; plain JSON, so that it can go to another machine."""

    number: int
    items: tuple[Any, ...]


def cut(items: Iterable[T], size: int) -> Iterator[tuple[int, tuple[T, ...]]]:
    """Numbered runs of `size` items; the last may be shorter."""
    number, waiting = 0, []
    for item in items:
        waiting.append(item)
        if len(waiting) == size:
            yield number, tuple(waiting)
            number, waiting = number + 1, []
    if waiting:
        yield number, tuple(waiting)
