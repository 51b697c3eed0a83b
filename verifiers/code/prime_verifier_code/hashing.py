"""Sets and dicts of values that a program chose, perhaps so that their hashes collide.

Called where a result is rebuilt or an assertion makes a set of one. Half a million integers of one
hash would keep a set busy for hours, in the host and outside every limit of a jail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

COLLISIONS = 64  # different items of one hash; honest ones share a hash by twos, as -1 and -2 do


def bounded(items: Iterable[Any]) -> list[Any]:
    """The different items, in order.

    Raises:
        ValueError: too many of them share a hash.
        TypeError: one has no hash.
    """
    kept: list[Any] = []
    by_hash: dict[int, list[Any]] = {}
    for item in items:
        others = by_hash.setdefault(hash(item), [])
        if any(item is other or item == other for other in others):
            continue
        others.append(item)
        kept.append(item)
        if len(others) > COLLISIONS:
            raise ValueError("items that collide")
    return kept


def bounded_set(items: Iterable[Any] = ()) -> set[Any]:
    """`set`, within bounds."""
    return set(bounded(items))


def bounded_frozenset(items: Iterable[Any] = ()) -> frozenset[Any]:
    """`frozenset`, within bounds."""
    return frozenset(bounded(items))


def bounded_dict(pairs: Iterable[Any] = ()) -> dict[Any, Any]:
    """`dict` of pairs or of a dict, within bounds."""
    if isinstance(pairs, dict):
        return dict(pairs)
    read = [(key, value) for key, value in pairs]
    bounded(key for key, _ in read)
    return dict(read)
