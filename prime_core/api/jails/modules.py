"""What a program's text tells before it runs: modules that it imports, names that it uses.

Called by a session before its first input, so that the zygote imports modules once. A guess from
the text: a miss costs time, or a word in a failure's detail, never a verdict.
"""

from __future__ import annotations

import re
import sys

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


def imported(source: str) -> set[str]:
    """Names of modules that the text seems to import."""
    found: set[str] = set()
    for single, several in IMPORT.findall(source[:SCANNED]):
        for part in (single or several).split(","):
            words = part.split()
            if words:
                found.add(words[0])
    return found


def modules_of(source: str) -> list[str]:
    """Those that a zygote may import, sorted."""
    return sorted(imported(source) & KNOWN)


def foreign_modules(source: str) -> list[str]:
    """Those that are no part of the standard library, sorted."""
    tops = {name.partition(".")[0] for name in imported(source)}
    return sorted(tops - sys.stdlib_module_names - {""})


def names_streams(source: str) -> bool:
    """Whether the text may open a standard stream by a path."""
    return any(path in source for path in ("/dev/std", "/dev/fd/", "/proc/self/fd/"))
