"""Reads the result of a call, which the program inside may have written as it likes.

Called by a jail session. Invariant: what comes out consists of exactly None, bool, int, float, str,
list, tuple and dict, nested no deeper than the encoder nests, or isn't a result at all.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from prime_core.api.errors import FormatError

DEPTH = 200  # as the encoder in `runner.py`
COLLISIONS = 64  # keys of one hash; honest ones share a hash by twos, as -1 and -2 do
CONTAINERS = 500_000  # lists cost ten times their text in memory
LIST, TUPLE, DICT, INT, FLOAT = range(5)  # tags, the first item of every JSON array
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
HEX = re.compile(r"-?[0-9a-f]+")


def read_result(data: bytes) -> Any:
    """The value that a call's result stands for.

    Raises:
        FormatError: it isn't one whole result.
    """
    if data.count(b"[") > CONTAINERS:
        raise FormatError(f"the result holds more than {CONTAINERS} containers")
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise FormatError("not one whole result")
    try:
        return _rebuild(json.loads(data.decode("ascii")), 0)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FormatError(f"not a result: {type(error).__name__}") from error


def check_hashes(keys: Sequence[Any]) -> None:
    """Refuse keys chosen to collide: half a million of them would keep a dict busy for hours.

    Raises:
        FormatError: too many different keys have one hash.
        TypeError: a key has no hash.
    """
    if len(keys) > COLLISIONS and max(Counter(map(hash, keys)).values()) > COLLISIONS:
        raise FormatError("not a result: keys that collide")


def _rebuild(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if not isinstance(value, list) or depth >= DEPTH:
        raise FormatError("not a result: an object, or too deep")
    tag, items = value[0] if value else None, value[1:]
    if type(tag) is not int:
        raise FormatError("not a result: no tag")
    if tag == LIST:
        return [_rebuild(item, depth + 1) for item in items]
    if tag == TUPLE:
        return tuple(_rebuild(item, depth + 1) for item in items)
    if tag == DICT and len(items) % 2 == 0:
        rebuilt = [_rebuild(item, depth + 1) for item in items]
        check_hashes(rebuilt[::2])
        return dict(zip(rebuilt[::2], rebuilt[1::2], strict=True))
    if tag == INT and len(items) == 1 and HEX.fullmatch(items[0]):
        return int(items[0], 16)
    if tag == FLOAT and len(items) == 1:
        return FLOATS[items[0]]
    raise FormatError("not a result: an unknown tag")
