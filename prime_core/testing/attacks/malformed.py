"""Nodes that send files made to harm whoever reads them; `fuzz` mutates honest ones without end."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from random import Random
from typing import TYPE_CHECKING, Any

from prime_core.store.schema import SCHEMA_ID
from prime_core.testing.attacks.attack import Attempt, Forge, with_data
from prime_core.testing.attacks.world import World

if TYPE_CHECKING:
    import pyarrow as pa

HUGE = 200_000  # tokens of one row
BOMB = 2_000_000  # tokens of all prompts, whose lengths no other column fixes


def of_bytes(spoil: Callable[[bytes, Random], bytes]) -> Forge:
    """The honest file with its bytes spoilt, and a statement over the spoilt ones."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        return [with_data(world.signer, each, spoil(each.data, rng)) for each in attempts]

    return forge


def cut(data: bytes, rng: Random) -> bytes:
    """The file ends early, anywhere."""
    return data[: rng.randrange(len(data))]


def junk(data: bytes, rng: Random) -> bytes:
    """No Parquet at all, though it may begin and end as one."""
    middle = rng.randbytes(rng.randrange(1, 4096))
    return rng.choice((middle, b"PAR1" + middle + b"PAR1", b""))


def swapped_pages(data: bytes, rng: Random) -> bytes:
    """A piece of the pages exchanged for noise."""
    start = rng.randrange(4, len(data) // 2)
    return data[:start] + rng.randbytes(64) + data[start + 64 :]


def of_tables(change: Callable[[pa.Table, Random], Any]) -> Forge:
    """Written by another program: valid Parquet, another table."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        return [
            with_data(world.signer, each, _parquet(change(_table(each), rng), each))
            for each in attempts
        ]

    return forge


def _table(attempt: Attempt) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(io.BytesIO(attempt.data)) as source:
        return source.read(use_threads=False)


def _parquet(table: pa.Table, attempt: Attempt) -> bytes:
    import pyarrow.parquet as pq

    metadata = {
        "schema": SCHEMA_ID,
        "run_id": attempt.meta.run_id,
        "lock_digest": attempt.meta.lock_digest,
        "engine_fingerprint": attempt.meta.engine_fingerprint,
    }
    sink = io.BytesIO()
    with pq.ParquetWriter(
        sink,
        table.schema,
        use_dictionary=False,
        compression="zstd",
        write_statistics=False,
        store_schema=False,
    ) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata(metadata)
    return sink.getvalue()


def _replaced(table: pa.Table, name: str, values: Any, kind: Any = None) -> pa.Table:
    import pyarrow as pa

    index = table.schema.get_field_index(name)
    field = table.schema.field(name)
    field = field if kind is None else pa.field(name, kind, nullable=field.nullable)
    return table.set_column(index, field, pa.array(values, type=field.type))


def drifted(table: pa.Table, rng: Random) -> pa.Table:
    """Another schema: a column gone, one more, another type, another order."""
    import pyarrow as pa

    name = rng.choice(table.column_names)
    how = rng.randrange(4)
    if how == 0:
        return table.drop_columns([name])
    if how == 1:
        return table.append_column("advantage", pa.array([9.0] * len(table), pa.float32()))
    if how == 2:
        return _replaced(table, "step", table["step"].to_pylist(), pa.int64())
    return table.select(table.column_names[::-1])


def not_finite(table: pa.Table, rng: Random) -> pa.Table:
    """NaN or infinity where a number belongs."""
    bad = rng.choice((float("nan"), float("inf"), float("-inf")))
    name = rng.choice(("score", "reward", "temperature", "completion_logprobs"))
    values = table[name].to_pylist()
    row = rng.randrange(len(values))
    values[row] = [bad] * len(values[row]) if name == "completion_logprobs" else bad
    return _replaced(table, name, values)


def huge_lists(table: pa.Table, rng: Random) -> pa.Table:
    """A row of hundreds of thousands of tokens, a few bytes on the wire."""
    tokens = table["completion_tokens"].to_pylist()
    tokens[rng.randrange(len(tokens))] = [0] * HUGE
    return _replaced(table, "completion_tokens", tokens)


def bomb(table: pa.Table, rng: Random) -> pa.Table:
    """Prompts of millions of equal tokens: a few KB, and a hundred MB in lists of integers."""
    import numpy as np
    import pyarrow as pa

    rows = len(table)
    size = BOMB // rows
    kind = table.schema.field("prompt_tokens").type
    offsets = pa.array(np.arange(rows + 1) * size, pa.int32())
    tokens = pa.array(np.full(rows * size, rng.randrange(8), np.int32), kind.value_type)
    return _replaced(table, "prompt_tokens", pa.ListArray.from_arrays(offsets, tokens, type=kind))


def in_pieces(table: pa.Table, rng: Random) -> pa.Table:
    """Groups in pieces, samples twice, or ids that parse as nothing."""
    how = rng.randrange(3)
    if how == 0:
        return table.take(rng.sample(range(len(table)), len(table))[:-1])
    if how == 1:
        return _replaced(table, "sample", [0] * len(table))
    ids = [f"{value}\x00" for value in table["group_id"].to_pylist()]
    return _replaced(table, "group_id", ids)
