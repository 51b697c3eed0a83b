"""What every JSON record of a run is made of: strict parsing, deterministic bytes, bounded fields.

`records` and `prepared` hold the records themselves.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from prime_core.api.errors import FormatError

NODE_PATTERN = r"^[a-z0-9-]{1,64}\Z"  # DESIGN section 5; \Z because $ lets a newline through
_NODE = re.compile(NODE_PATTERN)
LIMIT = 64 * 1024 * 1024  # bytes of one record; a task list of a million tasks fits

MAX_ROLLOUTS = 65536  # rollouts of one submission
I32_MAX = 2**31 - 1

Count = Annotated[int, Field(ge=0, le=I32_MAX)]
Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}\z")]
Name = Annotated[str, Field(min_length=1, max_length=256)]
Node = Annotated[str, Field(pattern=r"^[a-z0-9-]{1,64}\z")]
Text = Annotated[str, Field(max_length=4096)]

STRICT = ConfigDict(extra="forbid", strict=True)
_R = TypeVar("_R", bound="Record")


class Record:
    """Base of the records: strict JSON in, deterministic JSON out."""

    def to_json(self) -> bytes:
        """UTF-8 JSON with sorted keys and no spaces; equal records give equal bytes."""
        payload = asdict(self)  # type: ignore[call-overload]  # every subclass is a dataclass
        text = json.dumps(
            payload, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
        )
        return text.encode()

    @classmethod
    def from_json(cls: type[_R], data: bytes, *, where: str | None = None) -> _R:
        """Parse one record.

        Args:
            data: what `to_json` wrote, at most `LIMIT` bytes.
            where: the object's path, for the message.

        Raises:
            FormatError: unknown or missing fields, wrong types, values out of bounds.
        """
        name = cls.__name__
        if len(data) > LIMIT:
            raise FormatError(f"a {name} of {len(data)} bytes is above {LIMIT}", where=where)
        try:
            record: _R = _adapter(cls).validate_json(data)  # type: ignore[arg-type]  # a class
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise FormatError(
                f"not a {name}: {field}: {first['msg']}",
                where=where,
                fix="the object was written by another version or damaged; it can't be used",
            ) from error
        return record


@lru_cache(maxsize=64)
def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    return TypeAdapter(record)


def is_node(name: str) -> bool:
    """Whether a node name has the form that file names and group ids allow."""
    return _NODE.match(name) is not None
