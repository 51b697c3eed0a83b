"""A tiny model whose tokenizer merges: text written token by token comes back as other tokens."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

from prime_core.engines.tiny_model import build_tiny_model

SYMBOLS = tuple(string.ascii_letters + string.digits + string.punctuation + " \n")
MERGES = [*zip(SYMBOLS[:-3:2], SYMBOLS[1:-2:2], strict=True), ("c", "a"), ("l", "c")]


def build_merging_model(directory: Path, **options: Any) -> Path:
    """As `build_tiny_model`, with two tokens or one for many pairs of characters."""
    special = 3
    size = len(SYMBOLS) + special + len(MERGES)
    build_tiny_model(directory, symbols=SYMBOLS, vocab=size, **options)
    path = directory / "tokenizer.json"
    saved = json.loads(path.read_text())
    for index, (first, second) in enumerate(MERGES):
        saved["model"]["vocab"][first + second] = len(SYMBOLS) + special + index
        saved["model"]["merges"].append([first, second])
    path.write_text(json.dumps(saved))
    return directory
