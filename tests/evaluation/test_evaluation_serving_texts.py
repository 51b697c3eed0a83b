"""Text while tokens come: pieces add up, stops never show, half characters wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.engines.tiny_model import build_tokenizer
from prime_core.evaluation.serving.lines import Line
from prime_core.evaluation.serving.texts import Decoder, StopFinder


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, tokens: Sequence[int], **options: Any) -> str:
        return bytes(tokens).decode("utf-8", errors="replace")


@given(st.text(max_size=30), st.text(max_size=5))
def test_the_pieces_of_a_text_add_up_to_it(text: str, before: str) -> None:
    decoder = Decoder(Bytes(), list(before.encode()))
    pieces = [decoder.add(token) for token in text.encode()]
    assert "".join([*pieces, decoder.rest()]) == text
    assert all("\ufffd" not in piece or "\ufffd" in text for piece in pieces)


@given(st.binary(max_size=60))
def test_bytes_that_are_no_text_end_too(data: bytes) -> None:
    decoder = Decoder(Bytes(), [])
    said = "".join(decoder.add(token) for token in data) + decoder.rest()
    assert said.replace("\ufffd", "") == data.decode("utf-8", errors="ignore").replace("\ufffd", "")


@given(
    st.lists(st.text(alphabet="ab", min_size=1, max_size=4), max_size=3),
    st.lists(st.text(alphabet="ab", max_size=3), max_size=12),
)
def test_text_is_cut_at_the_first_stop_however_it_is_cut_up(
    stops: list[str], pieces: list[str]
) -> None:
    finder, shown = StopFinder(stops), ""
    for piece in pieces:
        shown += finder.add(piece)
        if finder.found:
            break
    else:
        shown += finder.rest()
    text = "".join(pieces)
    if finder.found:
        assert any(text.startswith(shown + stop) for stop in stops)
    else:
        assert shown == text
    assert not any(stop in shown for stop in stops)


def test_special_tokens_are_not_text(tmp_path: Path) -> None:
    tokenizer = build_tokenizer(tmp_path)
    decoder = Decoder(tokenizer, tokenizer.encode("<|im_start|>a"))
    tokens = tokenizer.encode("b<|im_end|>c")
    assert "".join(decoder.add(token) for token in tokens) == "bc"


def test_a_line_answers_together_what_waits_together() -> None:
    batches: list[list[int]] = []

    async def double(items: Sequence[int]) -> list[int]:
        batches.append(list(items))
        return [2 * item for item in items]

    async def run() -> list[int]:
        line: Line[int, int] = Line(double, 4)
        worker = asyncio.create_task(line.work())
        try:
            return await asyncio.gather(*(line.ask(number) for number in range(10)))
        finally:
            worker.cancel()

    assert asyncio.run(run()) == [2 * number for number in range(10)]
    assert batches == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_batch_that_fails_tells_everyone_and_the_line_goes_on() -> None:
    async def picky(items: Sequence[int]) -> list[int]:
        if 13 in items:
            raise ValueError("unlucky")
        return list(items)

    async def run() -> None:
        line: Line[int, int] = Line(picky, 2)
        worker = asyncio.create_task(line.work())
        found = await asyncio.gather(*map(line.ask, (1, 13, 2)), return_exceptions=True)
        assert [type(each) for each in found] == [ValueError, ValueError, int]
        worker.cancel()

    asyncio.run(run())


def test_whoever_left_the_line_costs_nothing() -> None:
    seen: list[int] = []

    async def keep(items: Sequence[int]) -> list[int]:
        seen.extend(items)
        return list(items)

    async def run() -> None:
        line: Line[int, int] = Line(keep, 4)
        leaving = asyncio.create_task(line.ask(1))
        staying = asyncio.create_task(line.ask(2))
        await asyncio.sleep(0)
        leaving.cancel()
        worker = asyncio.create_task(line.work())
        assert await staying == 2
        with pytest.raises(asyncio.CancelledError):
            await leaving
        worker.cancel()

    asyncio.run(run())
    assert seen == [2]
