"""Lines of the keys of a TOML document: tables, arrays of tables, dotted keys, inline values.

`prime_core.config.document` calls it on text that tomllib has accepted already, so it checks no
grammar. Every key and array element that tomllib returns has a line here (a property test).
"""

from __future__ import annotations

import re
import tomllib
from bisect import bisect_left
from typing import TypeAlias

from prime_core.config import toml_text

KeyPath: TypeAlias = tuple[str | int, ...]

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_LITERAL = re.compile(r"'[^'\n]*'")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_SCALAR = re.compile(r"[^,\]}\n#]+")
# an ending may be preceded by one or two quotes that belong to the string
_MULTI_BASIC = re.compile(r'"""(?:[^"\\]|\\.|"{1,2}(?!"))*"{3,5}', re.DOTALL)
_MULTI_LITERAL = re.compile(r"'''(?:[^']|'{1,2}(?!'))*'{3,5}", re.DOTALL)


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines: dict[KeyPath, int] = {}
        self._breaks = [match.start() for match in re.finditer("\n", text)]
        self._elements: dict[KeyPath, int] = {}  # array of tables -> number of its elements

    def document(self) -> None:
        table: KeyPath = ()
        self._take(_BLANK)
        while self.at < len(self.text):
            if self.text.startswith("[", self.at):
                table = self._header()
            else:
                self._pair(table)
            self._take(_BLANK)

    def key(self) -> list[str]:
        """Read a dotted key; raises ValueError where there is none."""
        parts = []
        while True:
            self._take(_SPACE)
            start = self.text[self.at : self.at + 1]
            if start in ('"', "'") and start:
                raw = self._take(_BASIC if start == '"' else _LITERAL)
                parts.append(str(tomllib.loads(f"key = {raw}")["key"]))
            else:
                parts.append(self._take(_BARE))
            self._take(_SPACE)
            if not self.text.startswith(".", self.at):
                return parts
            self.at += 1

    def _header(self) -> KeyPath:
        line = self._line()
        array = self.text.startswith("[[", self.at)
        self.at += 2 if array else 1
        parts = self.key()
        self.at += 2 if array else 1
        path: KeyPath = ()
        for depth, part in enumerate(parts, start=1):
            path = (*path, part)
            self.lines.setdefault(path, line)
            if array and depth == len(parts):
                self._elements[path] = self._elements.get(path, 0) + 1
            if path in self._elements:
                path = (*path, self._elements[path] - 1)
                self.lines.setdefault(path, line)
        if not array:
            self.lines[path] = line  # [a] may come after [a.b], which only implied it
        return path

    def _pair(self, table: KeyPath) -> None:
        line = self._line()
        path = table
        for part in self.key():
            path = (*path, part)
            self.lines.setdefault(path, line)
        self.at += 1  # the equals sign
        self._take(_SPACE)
        self._value(path)

    def _value(self, path: KeyPath) -> None:
        text, at = self.text, self.at
        if text.startswith('"""', at):
            self._take(_MULTI_BASIC)
        elif text.startswith("'''", at):
            self._take(_MULTI_LITERAL)
        elif text.startswith('"', at):
            self._take(_BASIC)
        elif text.startswith("'", at):
            self._take(_LITERAL)
        elif text.startswith("[", at):
            self._items(path, "]")
        elif text.startswith("{", at):
            self._items(path, "}")
        else:
            self._take(_SCALAR)

    def _items(self, path: KeyPath, end: str) -> None:
        self.at += 1
        index = 0
        self._take(_BLANK)
        while not self.text.startswith(end, self.at):
            if end == "]":
                self.lines[(*path, index)] = self._line()
                self._value((*path, index))
                index += 1
            else:
                self._pair(path)
            self._take(_BLANK)
            if self.text.startswith(",", self.at):
                self.at += 1
                self._take(_BLANK)
        self.at += 1

    def _take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise ValueError(f"nothing to read at character {self.at}")
        self.at = match.end()
        return match.group()

    def _line(self) -> int:
        return bisect_left(self._breaks, self.at) + 1


def locate(text: str) -> dict[KeyPath, int]:
    """Line (from 1) of every key, table and array element of a valid TOML document."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


def split_assignment(text: str) -> tuple[tuple[str, ...], str]:
    """Split `a.b."c d" = value` into its key and the value's text.

    Raises:
        ValueError: there is no key or no equals sign.
    """
    scanner = _Scanner(text)
    key = scanner.key()
    if not text.startswith("=", scanner.at):
        raise ValueError("no equals sign after the key")
    return tuple(key), text[scanner.at + 1 :].strip()


def split_key(text: str) -> tuple[str, ...]:
    """Split a dotted key.

    Raises:
        ValueError: it isn't one.
    """
    scanner = _Scanner(text)
    key = scanner.key()
    if scanner.at != len(text):
        raise ValueError(f"{text!r} is not a dotted key")
    return tuple(key)


def dotted(path: KeyPath) -> str:
    """The text of a key path, as `--set` takes it."""
    return ".".join(toml_text.key(part) if isinstance(part, str) else str(part) for part in path)
