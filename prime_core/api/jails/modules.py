"""Which modules of the standard library a program will import, so that its zygote does it once.

Called by a session before its first input. A guess from the text: a miss costs time, never a
verdict.
"""

from __future__ import annotations

import re

# Without side effects when imported before a fork: no threads, no output, no state of a process.
# fmt: off
KNOWN = frozenset({
    "__future__", "abc", "array", "ast", "asyncio", "atexit", "base64", "binascii", "bisect",
    "builtins", "calendar", "cmath", "collections", "collections.abc", "concurrent.futures",
    "contextlib", "copy", "csv", "ctypes", "dataclasses", "datetime", "decimal", "difflib",
    "enum", "errno", "fractions", "functools", "gc", "hashlib", "heapq", "html", "inspect", "io",
    "itertools", "json", "keyword", "linecache", "locale", "logging", "math", "numbers",
    "operator", "os", "os.path", "pickle", "pprint", "queue", "random", "re", "secrets", "shutil",
    "signal", "socket", "statistics", "string", "struct", "subprocess", "sys", "tempfile",
    "textwrap", "threading", "time", "timeit", "tokenize", "traceback", "types", "typing",
    "unicodedata", "unittest", "uuid", "warnings", "weakref", "zlib",
})
# fmt: on
IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import|import[ \t]+([\w., \t]+))", re.M)
SCANNED = 100_000  # characters of a program that are looked at


def modules_of(source: str) -> list[str]:
    """Names of known modules that the text seems to import, sorted."""
    found: set[str] = set()
    for single, several in IMPORT.findall(source[:SCANNED]):
        for part in (single or several).split(","):
            words = part.split()
            if words:
                found.add(words[0])
    return sorted(found & KNOWN)
