"""Every key of a TOML document has the line that it stands on, whatever surrounds it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.config import toml_text
from prime_core.config.locate import dotted, locate, split_assignment, split_key

SCALARS = [
    "1",
    "-2.5e3",
    "true",
    "inf",
    "1979-05-27 07:32:00",
    '"[a] # = x"',
    "'\\ ] }'",
    '"\\" , ]"',
    '""',
    '"""\nkey = 1\n[table]\n# no comment\n"""',
    '"""one "two" ""three\\"\\"" """',
    '""""quoted""""',
    '""""""',
    "'''\n[[x]]\n'a' = '''",
    "''''''",
    "''''quoted'''''",
]
NAMES = st.one_of(
    st.from_regex(r"[A-Za-z0-9_-]{1,3}", fullmatch=True),
    st.text(st.sampled_from("a.=#[]\"'\\ \n\té"), max_size=3),
)


@dataclass
class Page:
    """Writes TOML, and remembers the line of everything it writes."""

    draw: st.DrawFn
    text: str = ""
    lines: dict[tuple[str | int, ...], int] = field(default_factory=dict)

    def put(self, text: str) -> None:
        self.text += text

    def here(self) -> int:
        return self.text.count("\n") + 1

    def noise(self) -> None:
        for _ in range(self.draw(st.integers(0, 2))):
            self.put(
                self.draw(st.sampled_from(["\n", "  \t\n", '# [x] = \'y\' """\n', "  # a\r\n"]))
            )

    def fresh(self, used: set[str]) -> str:
        name = self.draw(NAMES.filter(lambda name: name not in used))
        used.add(name)
        return name

    def pair(self, table: tuple[str | int, ...], used: set[str], depth: int, inline: bool) -> None:
        path = table
        line = self.here()
        for count in range(self.draw(st.integers(1, 2))):
            name = self.fresh(used if count == 0 else set())
            if count:
                self.put(self.draw(st.sampled_from([".", " . "])))
            self.put(toml_text.key(name))
            path = (*path, name)
            self.lines[path] = line
        self.put(self.draw(st.sampled_from(["=", " = "])))
        self.value(path, depth, inline)

    def value(self, path: tuple[str | int, ...], depth: int, inline: bool) -> None:
        kind = self.draw(st.sampled_from(["scalar", "array", "table"] if depth else ["scalar"]))
        if kind == "scalar":
            choices = [text for text in SCALARS if not inline or "\n" not in text]
            self.put(self.draw(st.sampled_from(choices)))
        elif kind == "array":
            self.put("[")
            count = self.draw(st.integers(0, 3))
            for index in range(count):
                if not inline:
                    self.put("\n")
                    self.noise()
                self.lines[(*path, index)] = self.here()
                self.value((*path, index), depth - 1, inline)
                self.put("," if index < count - 1 or self.draw(st.booleans()) else " ")
            self.put("]")
        else:
            self.put("{ ")
            used: set[str] = set()
            count = self.draw(st.integers(0, 3))
            for index in range(count):
                self.pair(path, used, depth - 1, True)
                self.put(" , " if index < count - 1 else " ")
            self.put("}")

    def body(self, table: tuple[str | int, ...], used: set[str]) -> None:
        for _ in range(self.draw(st.integers(0, 3))):
            self.noise()
            self.put(self.draw(st.sampled_from(["", "  "])))
            self.pair(table, used, 2, False)
            self.put(self.draw(st.sampled_from(["\n", " # a = 1\n", "\r\n"])))

    def header(self, names: tuple[str, ...], brackets: int) -> None:
        key = " . ".join(toml_text.key(name) for name in names)
        self.put(f"{'[' * brackets}{key}{']' * brackets}  # note\n")


@st.composite
def pages(draw: st.DrawFn) -> Page:
    page = Page(draw)
    used: set[str] = set()
    page.body((), used)
    for _ in range(draw(st.integers(0, 3))):
        name = page.fresh(used)
        elements = draw(st.integers(0, 3))
        if elements == 0:
            page.noise()
            page.lines[(name,)] = page.here()
            page.header((name,), 1)
            page.body((name,), set())
        for index in range(elements):
            page.noise()
            page.lines.setdefault((name,), page.here())
            page.lines[(name, index)] = page.here()
            page.header((name,), 2)
            inner: set[str] = set()
            page.body((name, index), inner)
            if draw(st.booleans()):
                sub, deep = page.fresh(inner), draw(NAMES)
                page.noise()
                page.lines[(name, index, sub)] = page.here()
                page.lines[(name, index, sub, deep)] = page.here()
                page.header((name, sub, deep), 1)
                page.body((name, index, sub, deep), set())
    return page


def paths(value: object, path: tuple[str | int, ...] = ()) -> set[tuple[str | int, ...]]:
    found = {path} if path else set()
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for name, part in items:
        found |= paths(part, (*path, name))
    return found


@settings(max_examples=60, deadline=None)
@given(pages())
def test_every_key_has_the_line_it_was_written_on(page: Page) -> None:
    data = tomllib.loads(page.text)
    lines = locate(page.text.replace("\r\n", "\n"))
    assert set(lines) == paths(data)
    wrong = {key: (line, lines[key]) for key, line in page.lines.items() if lines[key] != line}
    assert not wrong


def test_tables_arrays_of_tables_and_dotted_keys_are_found() -> None:
    text = """\
a.b.c = 1

[x.y]   # implies x
k = [
  1,
  { z = 2 },  # ] }
]
[[e]]
use = "one"
[e.with]
n = 1
[[e]]
with.n = 2
[x]
late = true
"""
    lines = locate(text)
    assert lines["a",] == lines["a", "b"] == lines["a", "b", "c"] == 1
    assert lines["x", "y"] == 3
    assert lines["x",] == 14
    assert lines["x", "y", "k", 1, "z"] == 6
    assert (lines["e", 0], lines["e", 0, "with", "n"]) == (8, 11)
    assert (lines["e", 1], lines["e", 1, "with", "n"]) == (12, 13)


@pytest.mark.parametrize(
    ("text", "key", "value"),
    [
        ("trainer.lr=1e-6", ("trainer", "lr"), "1e-6"),
        (' a . "b.c" = x = y', ("a", "b.c"), "x = y"),
        ("environments.0.weight=", ("environments", "0", "weight"), ""),
    ],
)
def test_assignments_split_at_the_first_equals_sign_after_the_key(
    text: str, key: tuple[str, ...], value: str
) -> None:
    assert split_assignment(text) == (key, value)


@pytest.mark.parametrize("text", ["", "=1", "a b=1", "a..b=1", "a", '"a=1'])
def test_what_is_no_assignment_raises(text: str) -> None:
    with pytest.raises(ValueError, match=r"nothing to read|no equals"):
        split_assignment(text)


@given(st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_dotted_keys_split_back(names: list[str]) -> None:
    assert split_key(dotted(tuple(names))) == tuple(names)
