"""Held-out tasks chosen by hash, so that no list has to be kept and no order matters.

Called by `load_tasks` and by procedural environments; a key is on the same side for every share
of the run, on every machine, whatever else the data set holds.
"""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import Field

from prime_core.api.specs import Params

SplitName = Literal["train", "test", "all"]


class Split(Params):
    """Which side of a data set a run reads."""

    name: SplitName = Field(default="all", description="train, test or all")
    test_share: float = Field(
        default=0.1, gt=0, lt=1, description="share of the tasks that is held out"
    )


def in_split(key: str, name: SplitName, test_share: float) -> bool:
    """True where the key's task belongs to the split.

    The first 64 bits of SHA-256 of the key (UTF-8, lone surrogates kept as they are), read as a
    fraction, are below `test_share` exactly for the held-out keys.
    """
    if name == "all":
        return True
    word = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()[:8]
    held_out = int.from_bytes(word, "big") < int(test_share * 2**64)
    return held_out == (name == "test")
