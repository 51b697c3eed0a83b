"""Walks the page headers of a Parquet row group before anything is decoded.

A footer can lie about sizes, and one dictionary or run-length page of a few bytes can decode to
gigabytes; the strict reader of submissions therefore admits version 1 data pages of PLAIN values
only, and here holds their counts and sizes to the footer and to a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from prime_core.api.errors import FormatError

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Numbers of parquet.thrift (apache/parquet-format)
_DATA_PAGE = 0
_PLAIN = 0
_RLE = 3
_CODECS = ("UNCOMPRESSED", "ZSTD")
# Types of the Thrift compact protocol
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_MAX_DEPTH = 8


def check_pages(row_group: pq.RowGroupMetaData, data: bytes, limit: int) -> None:
    """Hold every page of a row group to its footer.

    Args:
        row_group: the footer's claim.
        data: the whole file.
        limit: decoded bytes allowed, where a value counts 4 bytes whatever its encoding.

    Raises:
        FormatError: another encoding or codec, pages that don't fill their chunk, or too much.
    """
    decoded = 0
    for index in range(row_group.num_columns):
        chunk = row_group.column(index)
        where = f"column {chunk.path_in_schema[:100]}"
        if chunk.compression not in _CODECS:
            raise FormatError(f"codec {chunk.compression} isn't zstd or none", where=where)
        if chunk.has_dictionary_page or chunk.file_path:
            raise FormatError("has a dictionary page or lies in another file", where=where)
        start, size = chunk.data_page_offset, chunk.total_compressed_size
        if start < 4 or size < 0 or start + size > len(data):
            raise FormatError("lies outside the file", where=where)
        values, unpacked = _walk(data, start, start + size, where)
        if values != chunk.num_values or unpacked != chunk.total_uncompressed_size:
            raise FormatError("pages hold other counts or sizes than the footer says", where=where)
        decoded += unpacked + 4 * values
        if decoded > limit:
            raise FormatError(f"decodes to more than {limit} bytes", where=where)


def _walk(data: bytes, start: int, end: int, where: str) -> tuple[int, int]:
    """Sum values and uncompressed bytes (headers included) of the pages in [start, end)."""
    values = unpacked = 0
    while start < end:
        cursor = _Cursor(data, start, end, where)
        header = cursor.struct(0)
        page = header.get(5)
        sizes = (header.get(2), header.get(3))
        if header.get(1) != _DATA_PAGE or not isinstance(page, dict):
            raise FormatError("has a page that isn't a version 1 data page", where=where)
        if page.get(2) != _PLAIN or page.get(3) != _RLE or page.get(4) != _RLE:
            raise FormatError("has a page that isn't PLAIN with RLE levels", where=where)
        counts = (page.get(1), *sizes)
        if not all(isinstance(count, int) and count >= 0 for count in counts):
            raise FormatError("has a page of negative or missing size", where=where)
        values += page[1]
        unpacked += header[2] + cursor.at - start
        start = cursor.at + header[3]
    if start != end:
        raise FormatError("has a page that goes beyond its chunk", where=where)
    return values, unpacked


class _Cursor:
    """Reads the Thrift compact protocol; every read is inside [at, end) or a FormatError."""

    def __init__(self, data: bytes, at: int, end: int, where: str) -> None:
        self._data, self.at, self._end, self._where = data, at, end, where

    def struct(self, depth: int) -> dict[int, Any]:
        """Field id to value; integers, booleans and structs are kept, other values skipped."""
        if depth > _MAX_DEPTH:
            raise FormatError("page header is nested too deep", where=self._where)
        fields: dict[int, Any] = {}
        last = 0
        while head := self._byte():
            kind, delta = head & 15, head >> 4
            last = last + delta if delta else self._zigzag()
            fields[last] = self._value(kind, depth)
        return fields

    def _value(self, kind: int, depth: int) -> Any:
        if kind in (_TRUE, _FALSE):
            return kind == _TRUE
        if kind in (_I16, _I32, _I64):
            return self._zigzag()
        if kind == _STRUCT:
            return self.struct(depth + 1)
        if kind == _BYTE:
            return self._skip(1)
        if kind == _DOUBLE:
            return self._skip(8)
        if kind == _BINARY:
            return self._skip(self._varint())
        if kind in (_LIST, _SET):
            return self._list(depth + 1)
        raise FormatError("page header has a field of unknown type", where=self._where)

    def _list(self, depth: int) -> None:
        head = self._byte()
        count = head >> 4
        if count == 15:
            count = self._varint()
        if depth > _MAX_DEPTH or count > self._end - self.at:
            raise FormatError("page header has too long a list", where=self._where)
        for _ in range(count):
            self._value(head & 15, depth)

    def _byte(self) -> int:
        if self.at >= self._end:
            raise FormatError("page header is cut off", where=self._where)
        self.at += 1
        return self._data[self.at - 1]

    def _skip(self, count: int) -> None:
        if count > self._end - self.at:
            raise FormatError("page header is cut off", where=self._where)
        self.at += count

    def _varint(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 63:
                raise FormatError("page header has too long a number", where=self._where)

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
