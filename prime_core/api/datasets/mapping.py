"""One row becomes one task: columns by name, path, template or constant.

Called by `load_tasks` for each row; a row that doesn't fit raises ValueError with the reason, and
the caller adds file and line.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, cast

from prime_core.api.datasets.literals import check_text, plain_json, read_mapping
from prime_core.api.datasets.source import TEMPLATE_PART, Column, DatasetSource, FieldName
from prime_core.api.types import Message, Role, Task

ROLES = ("system", "user", "assistant", "tool")
MISSING = object()


class RowMapping:
    """The column mapping of a source, ready to be applied."""

    def __init__(self, source: DatasetSource) -> None:
        self._columns = {field: Column.of(value) for field, value in source.columns.items()}
        self._metadata = source.metadata_columns
        self._verification = source.verification_columns

    def roots(self) -> set[str]:
        """Every column that may be read, dotted paths also by their first part."""
        names: set[str] = {*FieldName.__args__, *self._metadata, *self._verification}  # type: ignore[attr-defined]
        for column in self._columns.values():
            names.update(column.names())
        return names | {name.split(".", 1)[0] for name in names}

    def task(self, row: Mapping[str, Any]) -> Task:
        """The task of a row.

        A row without problem_id is named by its prompt: "sha256:" and 16 hex digits.

        Raises:
            ValueError: a column is missing, or holds what its field can't.
        """
        prompt = _prompt(self._value(row, "prompt"))
        metadata = _mapping(self._value(row, "metadata"), "metadata")
        verification = _mapping(self._value(row, "verification_info"), "verification_info")
        for name in self._metadata:
            metadata[name] = plain_json(_lookup(row, name))
        for name in self._verification:
            verification[name] = plain_json(_lookup(row, name))
        in_source_id = self._text(row, "in_source_id")
        if in_source_id is not None:
            metadata.setdefault("in_source_id", in_source_id)
        problem_id = self._text(row, "problem_id")
        if problem_id == "":
            raise ValueError("problem_id is empty")
        return Task(
            id=problem_id or _id_of(prompt),
            prompt=prompt,
            gold=self._text(row, "gold_standard_solution"),
            verification=verification,
            metadata=metadata,
            task_type=self._text(row, "task_type") or "",
            source=self._text(row, "source") or "",
        )

    def _value(self, row: Mapping[str, Any], field: FieldName) -> Any:
        column = self._columns.get(field)
        if column is None:
            return row.get(field)
        if column.template is not None:
            value: Any = _fill(column.template, row)
        elif column.column is not None:
            value = _lookup(row, column.column)
        else:
            value = column.const
        return value if column.after is None else _after(value, column.after, field)

    def _text(self, row: Mapping[str, Any], field: FieldName) -> str | None:
        value = self._value(row, field)
        return None if value is None else _as_text(value, field)


def _lookup(row: Mapping[str, Any], path: str) -> Any:
    if path in row:
        return row[path]
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping):
            value = value.get(part, MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = MISSING
        if value is MISSING:
            names = ", ".join(sorted(map(str, row))[:12])
            raise ValueError(f"no column {path!r}; the row has {names}")
    return value


def _fill(template: str, row: Mapping[str, Any]) -> str:
    def part(match: Any) -> str:
        if match[1] is None:
            return str(match[0][0])
        return _as_text(_lookup(row, match[1]), match[1])

    return TEMPLATE_PART.sub(part, template)


def _after(value: Any, marker: str, field: str) -> str:
    text = _as_text(value, field)
    _, found, rest = text.rpartition(marker)
    if not found:
        raise ValueError(f"{field} holds no {marker!r}")
    return rest.strip()


def _as_text(value: Any, name: str) -> str:
    """Text as it is, numbers in figures; a whole float (SVAMP's answers) without its .0."""
    if isinstance(value, str):
        return check_text(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(plain_json(value))
    raise ValueError(f"{name} is {type(value).__name__}, neither text nor a number")


def _mapping(value: Any, name: str) -> dict[str, Any]:
    if value is None or value == "":
        return {}
    try:
        if isinstance(value, str):
            return read_mapping(value)
        plain = plain_json(value)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error
    if not isinstance(plain, dict):
        raise ValueError(f"{name} is {type(value).__name__}, not a dict")
    return plain


def _prompt(value: Any) -> tuple[Message, ...]:
    if value is None:
        raise ValueError("no column 'prompt', or it is null; name one in columns.prompt")
    if not isinstance(value, list | tuple):
        text = _as_text(value, "prompt")
        if not text.strip():
            raise ValueError("prompt is empty")
        return (Message("user", text),)
    messages = tuple(_message(item) for item in value)
    if not messages:
        raise ValueError("prompt has no message")
    return messages


def _message(item: Any) -> Message:
    if not isinstance(item, Mapping) or not {"role", "content"} <= set(item):
        raise ValueError("a message of prompt isn't a dict with role and content")
    role, content = item["role"], item["content"]
    if role not in ROLES:
        raise ValueError(f"a message of prompt has role {role!r}, not one of {', '.join(ROLES)}")
    if not isinstance(content, str):
        raise ValueError("a message of prompt has content that isn't text")
    return Message(cast("Role", role), check_text(content))


def _id_of(prompt: tuple[Message, ...]) -> str:
    text = json.dumps([[message.role, message.content] for message in prompt])
    return "sha256:" + hashlib.sha256(text.encode("ascii")).hexdigest()[:16]
