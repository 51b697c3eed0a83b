"""Private tests that a data set keeps as base64 of zlib of a pickle (LiveCodeBench).

Called by the schema of LiveCodeBench; nothing but text, numbers, lists and dicts can come out, no
name is ever looked up, and sizes are bounded before anything is unpacked.
"""

from __future__ import annotations

import base64
import binascii
import io
import pickle
import pickletools
import zlib
from typing import Any

MAX_PACKED = 256 * 2**20  # characters of base64
MAX_UNPACKED = 512 * 2**20  # bytes; the largest problem of LiveCodeBench holds some 100 MB
MAX_OPCODES = 2_000_000

# What pickles of plain data consist of; GLOBAL, REDUCE, BUILD, INST, OBJ, NEWOBJ, extension codes,
# persistent ids and out-of-band buffers are not among them.
PLAIN_OPCODES = frozenset(
    {
        *("PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK"),
        *("NONE", "NEWTRUE", "NEWFALSE", "INT", "LONG", "LONG1", "LONG4"),
        *("BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
        *("UNICODE", "BINUNICODE", "BINUNICODE8", "SHORT_BINUNICODE"),
        *("EMPTY_LIST", "LIST", "APPEND", "APPENDS"),
        *("EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"),
        *("EMPTY_DICT", "DICT", "SETITEM", "SETITEMS"),
        *("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE", "GET", "BINGET", "LONG_BINGET"),
    }
)


class _PlainUnpickler(pickle.Unpickler):
    """The second wall: even an opcode that slipped through finds no name."""

    def find_class(self, module_name: str, global_name: str) -> Any:
        raise pickle.UnpicklingError(f"the pickle names {module_name}.{global_name}")


def unpack_tests(packed: str) -> Any:
    """The plain value inside.

    Raises:
        ValueError: too large, broken, or anything but plain data inside.
    """
    if len(packed) > MAX_PACKED:
        raise ValueError(f"packed tests of {len(packed)} characters; at most {MAX_PACKED} are read")
    try:
        compressed = base64.b64decode(packed.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError) as error:
        raise ValueError(f"packed tests aren't base64: {error}") from error
    data = _decompress(compressed)
    _check_opcodes(data)
    try:
        value = _PlainUnpickler(io.BytesIO(data)).load()
    except (pickle.UnpicklingError, EOFError, ValueError, TypeError, KeyError) as error:
        raise ValueError(f"packed tests can't be read: {error}") from error
    except (IndexError, AttributeError, MemoryError, OverflowError) as error:
        raise ValueError(f"packed tests are broken: {error}") from error
    return value


def _decompress(compressed: bytes) -> bytes:
    machine = zlib.decompressobj()
    try:
        data = machine.decompress(compressed, MAX_UNPACKED)
    except zlib.error as error:
        raise ValueError(f"packed tests aren't zlib data: {error}") from error
    if machine.unconsumed_tail or not machine.eof:
        raise ValueError(f"packed tests are cut off, or larger than {MAX_UNPACKED} bytes")
    return data


def _check_opcodes(data: bytes) -> None:
    try:
        for count, (opcode, _, _) in enumerate(pickletools.genops(data)):
            if opcode.name not in PLAIN_OPCODES:
                raise ValueError(f"packed tests hold the pickle opcode {opcode.name}")
            if count > MAX_OPCODES:
                raise ValueError(f"packed tests hold more than {MAX_OPCODES} pickle opcodes")
    except (EOFError, OverflowError, UnicodeDecodeError) as error:
        raise ValueError(f"packed tests are no pickle: {error}") from error
