"""Reads Thrift's compact protocol into plain Python, bounded, for Parquet footers and page headers.

`pages` is its only caller. Every read stays inside the given bytes, or is a `FormatError`; work and
memory are linear in their number.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from prime_core.api.errors import FormatError

Struct: TypeAlias = dict[int, Any]  # field id -> bool, int, bytes, Struct or list of them

# Types of the compact protocol
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MAX_DEPTH = 12


class CompactReader:
    """Reads structs from `data[at:end]`; `at` moves along."""

    def __init__(self, data: bytes, at: int, end: int) -> None:
        self._data, self.at, self._end = data, at, end

    def struct(self, depth: int = 0) -> Struct:
        """One struct.

        Raises:
            FormatError: cut off, nested too deep, a field twice, or a type that Parquet lacks.
        """
        if depth > _MAX_DEPTH:
            raise _broken("nested too deep")
        fields: Struct = {}
        last = 0
        while head := self._byte():
            last = last + (head >> 4) if head >> 4 else self._zigzag()
            if last in fields:
                raise _broken("has a field twice")
            fields[last] = self._value(head & 15, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind == _BYTE:
            return self._byte()
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _BINARY:
            return self._take(self._varint())
        if kind == _LIST:
            return self._list(depth + 1)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        raise _broken(f"has a field of type {kind}")

    def _list(self, depth: int) -> list[Any]:
        head = self._byte()
        kind, count = head & 15, head >> 4
        if count == 15:
            count = self._varint()
        if depth > _MAX_DEPTH or count > self._end - self.at:
            raise _broken("has too long a list")
        if kind in (_TRUE, _FALSE):
            return [self._byte() == _TRUE for _ in range(count)]
        return [self._value(kind, depth) for _ in range(count)]

    def _byte(self) -> int:
        return self._take(1)[0]

    def _take(self, count: int) -> bytes:
        if count > self._end - self.at:
            raise _broken("is cut off")
        self.at += count
        return self._data[self.at - count : self.at]

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise _broken("has too long a number")

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)


def _broken(reason: str) -> FormatError:
    return FormatError(f"a Parquet header {reason}", fix="refuse the file")
