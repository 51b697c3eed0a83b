"""Judges a Parquet file's headers before Arrow sees the file, against the one shape we write.

Called by the strict reader of submissions. A foreign footer can make Arrow abort the process
(an unknown codec does) and can lie about sizes, and a dictionary or run-length page of a few bytes
can decode to gigabytes; what passes here is one row group of PLAIN version 1 pages without gaps,
whose counts and sizes are those of the footer and within a limit.
"""

from __future__ import annotations

from typing import Any

from prime_core.api.errors import FormatError
from prime_core.store.thrift import CompactReader, Struct

MAGIC = b"PAR1"
_FOOTER_LIMIT = 256 * 1024
# Numbers and field ids of parquet.thrift (apache/parquet-format)
_DATA_PAGE = 0
_PLAIN, _RLE = 0, 3
_CODECS = (0, 6)  # none, zstd
_FILE_FIELDS = {1, 2, 3, 4, 5, 6, 7}
_GROUP_FIELDS = {1, 2, 3, 5, 6, 7}
_CHUNK_FIELDS = {2, 3}
_COLUMN_FIELDS = {1, 2, 3, 4, 5, 6, 7, 9, 13, 16}
_PAGE_FIELDS = {1, 2, 3, 5}
_DATA_PAGE_FIELDS = {1, 2, 3, 4, 5}


def read_footer(data: bytes) -> tuple[Struct, int]:
    """The footer as plain Python, and the offset where it starts; FormatError if there is none."""
    if len(data) < 12 or data[:4] != MAGIC or data[-4:] != MAGIC:
        raise FormatError("not a Parquet file, or cut off")
    size = int.from_bytes(data[-8:-4], "little")
    start = len(data) - 8 - size
    if size > _FOOTER_LIMIT or start < len(MAGIC):
        raise FormatError(f"a footer of {size} bytes can't be right")
    reader = CompactReader(data, start, len(data) - 8)
    footer = reader.struct()
    if reader.at != len(data) - 8:
        raise FormatError("bytes follow the footer's end")
    return footer, start


def key_values(footer: Struct) -> dict[str, str]:
    """The file's metadata; FormatError where it isn't distinct keys with UTF-8 values."""
    pairs = footer.get(5, [])
    try:
        found = {pair[1].decode(): pair[2].decode() for pair in pairs if not set(pair) - {1, 2}}
    except (KeyError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise FormatError("file metadata isn't UTF-8 keys and values") from error
    if len(found) != len(pairs):
        raise FormatError("file metadata has a key twice")
    return found


def check_layout(data: bytes, template: Struct, *, max_rows: int, limit: int) -> Struct:
    """Hold a file to the layout of `template`, the footer of a file that we wrote.

    Args:
        data: the whole file.
        template: its Parquet schema and columns are the expected ones.
        limit: decoded bytes allowed, where a value counts 4 bytes whatever its encoding.

    Returns:
        The footer.

    Raises:
        FormatError: any difference; the reason names the column.
    """
    footer, end = read_footer(data)
    _fields(footer, _FILE_FIELDS, "the footer")
    if not _same(footer.get(2), template[2]):
        raise FormatError(f"columns differ from the schema: {_first_odd(footer, template)}")
    if footer.get(1) != template[1] or footer.get(7) != template[7]:
        raise FormatError("format version or column orders differ")
    groups = footer.get(4)
    if not isinstance(groups, list) or len(groups) != 1 or not isinstance(groups[0], dict):
        raise FormatError("isn't one row group")
    group, rows = groups[0], footer.get(3, -1)
    _fields(group, _GROUP_FIELDS, "the row group")
    if not _count(rows) or not 0 < rows <= max_rows or group.get(3) != rows:
        raise FormatError(f"has no rows, or more than {max_rows}")
    chunks, expected = group.get(1), template[4][0][1]
    if not isinstance(chunks, list) or len(chunks) != len(expected):
        raise FormatError("the row group lacks columns")
    at, decoded = len(MAGIC), 0
    for chunk, ours in zip(chunks, expected, strict=True):
        name = b".".join(ours[3][3]).decode()
        column = _check_chunk(data, chunk, ours[3], (at, end), f"column {name}")
        decoded += column[6] + 4 * column[5]
        if decoded > limit:
            raise FormatError(f"decodes to more than {limit} bytes", where=f"column {name}")
        at += column[7]
    if at != end:
        raise FormatError("bytes between the last column and the footer")
    return footer


def _check_chunk(
    data: bytes, chunk: Any, ours: Struct, bounds: tuple[int, int], where: str
) -> Struct:
    """One column chunk that starts at bounds[0]: its metadata, then its pages against it."""
    at, end = bounds
    _fields(chunk, _CHUNK_FIELDS, where)
    column: Struct = chunk.get(3, {})
    _fields(column, _COLUMN_FIELDS, where)
    if not _same(column.get(1), ours[1]) or not _same(column.get(3), ours[3]):
        raise FormatError("type or path differs from the schema", where=where)
    if not all(_count(column.get(field)) for field in (4, 5, 6, 7, 9)):
        raise FormatError("a size or the codec is missing or negative", where=where)
    if column[4] not in _CODECS:
        raise FormatError("codec isn't zstd or none", where=where)
    if not _same(column.get(2), ours[2]):
        raise FormatError("encodings aren't RLE levels and PLAIN values", where=where)
    if column[9] != at or column[7] > end - at:
        raise FormatError("leaves a gap or reaches into the footer", where=where)
    if not _are_statistics(column.get(13, []), column.get(16, {})):
        raise FormatError("statistics aren't those of PLAIN data pages", where=where)
    values, unpacked = _walk(data, at, at + column[7], where)
    if values != column[5] or unpacked != column[6]:
        raise FormatError("pages hold other counts or sizes than the footer says", where=where)
    return column


def _walk(data: bytes, start: int, end: int, where: str) -> tuple[int, int]:
    """Sum values and uncompressed bytes (headers included) of the pages in [start, end)."""
    values = unpacked = 0
    while start < end:
        reader = CompactReader(data, start, end)
        header = reader.struct()
        _fields(header, _PAGE_FIELDS, where)
        page: Struct = header.get(5, {})
        _fields(page, _DATA_PAGE_FIELDS, where)
        encodings = [page.get(2), page.get(3), page.get(4)]
        if not _same(header.get(1), _DATA_PAGE) or not _same(encodings, [_PLAIN, _RLE, _RLE]):
            raise FormatError("has a page that isn't PLAIN of version 1", where=where)
        if page.get(5, {}) != {} or not all(
            map(_count, (page.get(1), header.get(2), header.get(3)))
        ):
            raise FormatError("has a page with statistics or without sizes", where=where)
        values += page[1]
        unpacked += header[2] + reader.at - start
        start = reader.at + header[3]
    if start != end:
        raise FormatError("has a page that goes beyond its chunk", where=where)
    return values, unpacked


def _are_statistics(encodings: Any, sizes: Any) -> bool:
    """Encoding statistics (page type, encoding, count) and size statistics, which nobody reads."""
    return (
        isinstance(encodings, list)
        and all(
            isinstance(entry, dict)
            and set(entry) == {1, 2, 3}
            and _same([entry[1], entry[2]], [_DATA_PAGE, _PLAIN])
            for entry in encodings
        )
        and isinstance(sizes, dict)
        and _count(sizes.get(1, 0))
        and all(
            isinstance(sizes.get(field, []), list) and all(map(_count, sizes.get(field, [])))
            for field in (2, 3)
        )
        and not set(sizes) - {1, 2, 3}
    )


def _fields(struct: Any, allowed: set[int], where: str) -> None:
    if not isinstance(struct, dict) or set(struct) - allowed:
        raise FormatError("has header fields that we never write", where=where)


def _count(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _same(left: Any, right: Any) -> bool:
    """Equality that tells True from 1, as Thrift does."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(left == right)


def _first_odd(footer: Struct, template: Struct) -> str:
    """Name the first schema element that differs."""
    found = footer.get(2)
    if not isinstance(found, list):
        return "there is no schema"
    for index, ours in enumerate(template[2]):
        theirs = found[index] if index < len(found) else None
        if not _same(theirs, ours):
            name = theirs.get(4) if isinstance(theirs, dict) else None
            what = (
                repr(name.decode(errors="replace"))[:80] if isinstance(name, bytes) else "nothing"
            )
            return f"{what} in place of {ours[4].decode()!r}, or another type"
    return "more columns than expected"
