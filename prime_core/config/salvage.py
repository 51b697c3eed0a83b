"""A whole run config out of a broken one, so that the rest of it can be checked all the same.

Called by `prime_core.config.load` after validation failed. What it replaced is poisoned: findings
that touch a poisoned key are dropped, because they would be about a value that nobody wrote.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from prime_core.config.locate import KeyPath
from prime_core.config.sections import RunConfig

# every required key; others fall back to their defaults
_STAND_INS: dict[str, Any] = {
    "use": "unknown",
    "path": "unknown",
    "max_tokens": 1,
    "model": {"path": "unknown"},
    "environments": [{"use": "unknown"}],
}
_CHOICE_LISTS = ("environments", "offline", "online", "trackers")


def salvage(
    data: Mapping[str, Any], error: ValidationError
) -> tuple[RunConfig | None, set[KeyPath]]:
    """The config with every faulty value replaced, and the key paths of those values.

    None where even that doesn't validate.
    """
    mended = copy.deepcopy(dict(data))
    poisoned: set[KeyPath] = set()
    for item in error.errors(include_url=False, include_context=False):
        path = _mend(mended, item["loc"])
        poisoned.add(path)
    try:
        return RunConfig.model_validate(mended, by_alias=True, by_name=False), poisoned
    except ValidationError:
        return None, poisoned


def _mend(data: dict[str, Any], loc: KeyPath) -> KeyPath:
    """Replace or remove the value at `loc`; returns the key path of what was changed."""
    node: Any = data
    for depth, part in enumerate(loc[:-1]):
        inner = node[part] if _holds(node, part) else None
        if not isinstance(inner, dict | list):
            return _replace(node, loc[: depth + 1])
        if isinstance(inner, list) and loc[depth] not in _CHOICE_LISTS:
            return _replace(node, loc[: depth + 1])  # an array of scalars goes as a whole
        node = inner
    return _replace(node, loc)


def _replace(node: Any, path: KeyPath) -> KeyPath:
    part = path[-1]
    if isinstance(node, list) and isinstance(part, int):
        node[part] = {"use": "unknown"}
    elif isinstance(node, dict):
        node.pop(part, None)
        if part in _STAND_INS:
            node[part] = copy.deepcopy(_STAND_INS[str(part)])
    return path


def _holds(node: Any, part: str | int) -> bool:
    if isinstance(node, list):
        return isinstance(part, int) and part < len(node)
    return isinstance(node, dict) and part in node


def touches(key: KeyPath, poisoned: set[KeyPath]) -> bool:
    """Whether a key is a poisoned one, lies inside one, or holds one."""
    return any(key[: len(bad)] == bad or bad[: len(key)] == key for bad in poisoned)
