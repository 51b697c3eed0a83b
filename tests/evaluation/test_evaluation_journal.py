"""The journal: whatever byte a kill cuts it at, it goes on, and nothing counts twice."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.api import EngineError, RunError
from prime_core.evaluation.crew import Deliver
from prime_core.evaluation.journal import open_journal
from prime_core.evaluation.orders import Order
from prime_core.evaluation.running import HOPELESS, Left, run_order
from prime_core.evaluation.units import Unit, cut

SETTINGS = {"of": "a test", "range": (0.0, 1.0)}
UNITS = [Unit(number, items) for number, items in cut(range(23), 4)]
ORDER = Order("score", {"use": "toy"}, {}, [], {}, depth=2)


class Doubling:
    """Doubles each item; dies before its `die`-th unit, and gives up what `up` names."""

    def __init__(self, die: int | None = None, up: frozenset[int] = frozenset()) -> None:
        self.die, self.up, self.did = die, up, []

    async def run(self, order: Order, units: Iterator[Unit], deliver: Deliver) -> None:
        for unit in sorted(units, key=lambda one: one.number % 3):
            if len(self.did) == self.die:
                raise KeyError("killed")
            self.did.append(unit.number)
            deliver(
                unit.number,
                [{"retry": "busy"} if item in self.up else {"twice": 2 * item}
                 for item in unit.items],
            )  # fmt: skip


def run(path: Path, crew: Doubling) -> tuple[Left, list[Any], list[tuple[int, int]]]:
    shown: list[tuple[int, int]] = []
    journal = open_journal(path, SETTINGS)
    try:
        left = asyncio.run(
            run_order(ORDER, iter(UNITS), 23, journal, crew, lambda *at: shown.append(at))
        )
        return left, list(journal.results()), shown
    finally:
        journal.close()


WHOLE = [{"twice": 2 * item} for item in range(23)]


@given(die=st.integers(0, 5), torn=st.integers(0, 60))
def test_a_kill_at_any_byte_loses_and_doubles_nothing(
    tmp_path_factory: pytest.TempPathFactory, die: int, torn: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "j.jsonl"
    with pytest.raises(KeyError):
        run(path, Doubling(die))
    os.truncate(path, max(0, path.stat().st_size - torn))
    again = Doubling()
    left, results, shown = run(path, again)
    assert results == WHOLE
    assert left.count == 0
    assert shown[-1] == (23, 23)
    if not torn:
        assert len(again.did) == len(UNITS) - die
    third = Doubling()
    assert run(path, third)[1] == WHOLE
    assert third.did == []


def test_what_was_given_up_is_done_again_alone(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    left, results, _ = run(path, Doubling(up=frozenset({5, 6, 20})))
    assert dict(left.reasons) == {"busy": 3}
    assert len(results) == 23 - 4 - 3  # units 4..7 and 20..22 aren't noted
    again = Doubling()
    assert run(path, again)[1] == WHOLE
    assert sorted(again.did) == [1, 5]


def test_nothing_more_is_asked_where_everything_is_given_up(tmp_path: Path) -> None:
    crew = Doubling(up=frozenset(range(23)))
    with pytest.raises(EngineError, match="were all given up: busy"):
        run(tmp_path / "j.jsonl", crew)
    assert len(crew.did) * 4 <= HOPELESS + 4
    # Where something was answered before, the rest is asked for to its end.
    run(tmp_path / "other.jsonl", Doubling(up=frozenset(range(4, 23))))
    left, results, _ = run(tmp_path / "other.jsonl", Doubling(up=frozenset(range(4, 23))))
    assert (left.count, results) == (19, WHOLE[:4])


def test_other_settings_are_refused_or_replaced(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    run(path, Doubling())
    with pytest.raises(RunError, match=r"other settings: of was 'a test', is 'another'"):
        open_journal(path, {**SETTINGS, "of": "another"})
    journal = open_journal(path, {**SETTINGS, "of": "another"}, replace=True)
    assert len(journal) == 0
    journal.remove()
    assert not path.exists()
    path.write_text('{"some": "file"}\n')
    with pytest.raises(RunError, match="is no journal"):
        open_journal(path, SETTINGS)
    assert path.read_text() == '{"some": "file"}\n'


def test_two_processes_dont_write_one_journal(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.jsonl", SETTINGS)
    with pytest.raises(RunError, match="another process"):
        open_journal(tmp_path / "j.jsonl", SETTINGS)
    journal.close()
    open_journal(tmp_path / "j.jsonl", SETTINGS).close()


def test_a_line_that_isnt_json_is_done_again(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    run(path, Doubling())
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = b"\0" * (len(lines[2]) - 1) + b"\n"
    lines.append(lines[-1])  # a unit that stands twice counts once
    path.write_bytes(b"".join(lines))
    again = Doubling()
    assert run(path, again)[1] == WHOLE
    assert len(again.did) == 1
    assert json.loads(path.read_bytes().splitlines()[0])["of"] == "a test"
