"""Files of completions, JSONL or Parquet, read row by row; for `prime-core score --completions`.

Invariant: rows have the same numbers each time the file is read, and a row that can't be used says
why and stops nobody.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from prime_core.api.errors import DatasetError, FormatError
from prime_core.api.types import Completion, Message
from prime_core.hosting import wire

FIELDS = ("task", "index", "completion", "messages", "id", "finish_reason", "token_count")
PARQUET_MAGIC = b"PAR1"
BATCH_ROWS = 256
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Row:
    """A completion of a task that is named by its id or by its index.

    Attributes:
        number: position among the file's rows, from 0; blank lines don't count.
        id: the row's own, as text; "" without one.
    """

    number: int
    id: str
    task: str | None
    index: int | None
    completion: Completion


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that can't be used, and why."""

    number: int
    reason: str


AnyRow: TypeAlias = Row | BadRow


@dataclass(frozen=True, slots=True)
class CompletionFile:
    """A file of completions.

    Attributes:
        columns: what the file calls the `FIELDS` that it doesn't call so.
    """

    path: Path
    columns: Mapping[str, str]

    def __post_init__(self) -> None:
        unknown = sorted(self.columns.keys() - set(FIELDS))
        if unknown:
            raise DatasetError(
                f"there is no field {unknown[0]}",
                where="--column",
                fix=f"give FIELD=COLUMN with a field of {', '.join(FIELDS)}",
            )

    def digest(self) -> str:
        """SHA-256 (hex) of the file.

        Raises:
            DatasetError: it can't be read.
        """
        found = hashlib.sha256()
        with self._open() as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
        return found.hexdigest()

    def rows(self) -> Iterator[AnyRow]:
        """Every row, in order.

        Raises:
            DatasetError: the file can't be read.
        """
        with self._open() as file:
            parquet = file.read(len(PARQUET_MAGIC)) == PARQUET_MAGIC
        found = self._parquet() if parquet else self._lines()
        for number, fields in enumerate(found):
            yield self._row(number, fields)

    def _open(self) -> Any:
        try:
            return self.path.open("rb")
        except OSError as error:
            raise DatasetError(
                f"the completions can't be read: {error.strerror}",
                where=str(self.path),
                fix="give a JSONL or Parquet file",
            ) from error

    def _lines(self) -> Iterator[Any]:
        with self._open() as file:
            for line in file:
                if line.strip():
                    try:
                        yield json.loads(line)
                    except (ValueError, RecursionError) as error:
                        yield f"this isn't JSON: {error}"

    def _parquet(self) -> Iterator[Any]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(self.path) as file:
                wanted = {self.columns.get(name, name) for name in FIELDS}
                columns = [name for name in file.schema_arrow.names if name in wanted]
                for batch in file.iter_batches(BATCH_ROWS, columns=columns):
                    yield from batch.to_pylist()
        except (pa.ArrowException, OSError) as error:
            raise DatasetError(
                f"the Parquet file can't be read: {error}",
                where=str(self.path),
                fix="write it again",
            ) from error

    def _row(self, number: int, fields: Any) -> AnyRow:
        if isinstance(fields, str):
            return BadRow(number, fields)
        if not isinstance(fields, dict):
            return BadRow(number, f"a {type(fields).__name__}, not an object")
        found = {name: fields.get(self.columns.get(name, name)) for name in FIELDS}
        try:
            return _read_row(number, found)
        except FormatError as error:
            return BadRow(number, error.what)


def _read_row(number: int, found: Mapping[str, Any]) -> Row:
    task, index = found["task"], found["index"]
    if task is None and index is None:
        raise FormatError("it names no task: it has neither task (an id) nor index")
    if task is not None and not isinstance(task, str):
        raise FormatError(f"task is a {type(task).__name__}, not a text")
    if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
        raise FormatError(f"index is a {type(index).__name__}, not an integer")
    finish, count = found["finish_reason"], found["token_count"]
    if finish is not None and finish not in wire.FINISH_REASONS:
        raise FormatError(f"finish_reason is {finish!r}, not one of {wire.FINISH_REASONS}")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 0):
        raise FormatError(f"token_count is {count!r}, not a whole number")
    messages = _messages(found["messages"])
    text = found["completion"]
    if text is None and messages:
        text = next(m.content for m in reversed(messages) if m.role == "assistant")
    if not isinstance(text, str):
        raise FormatError(
            "it has neither completion (a text) nor messages"
            if text is None
            else f"completion is a {type(text).__name__}, not a text"
        )
    return Row(
        number=number,
        id="" if found["id"] is None else str(found["id"]),
        task=task,
        index=index,
        completion=Completion(
            text,
            messages or (Message("assistant", text),),
            "stop" if finish is None else finish,
            count or 0,
        ),
    )


def _messages(value: Any) -> tuple[Message, ...]:
    """The turns after the prompt; a Parquet column may hold them as JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"messages isn't JSON: {error}") from error
    if not value:
        return ()
    if isinstance(value, list):
        value = [
            {"role": one.get("role"), "content": one.get("content")}
            if isinstance(one, dict)
            else one
            for one in value
        ]
    messages = wire.read_messages(value, "messages")
    if messages[0].role != "assistant":
        raise FormatError(
            f"messages begin with a {messages[0].role} message; leave the prompt out: they are "
            "what followed it"
        )
    return messages
