"""Arguments that several commands read alike: KEY=VALUE parameters and a completion's text."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from typing import Any

import click


def parameter(text: str) -> tuple[str, Any]:
    """KEY=VALUE of `--with`, the value as TOML or, since a shell eats quotes, as bare text.

    Raises:
        click.BadParameter: it isn't that.
    """
    key, equals, raw = text.partition("=")
    if not key or not equals:
        raise click.BadParameter(f"{text!r} isn't KEY=VALUE", param_hint="--with")
    try:
        parsed = tomllib.loads(f"value = {raw}")
    except tomllib.TOMLDecodeError:
        return key, raw
    return key, parsed["value"] if set(parsed) == {"value"} else raw


def read_completion(file: str) -> str:
    """The text of `--completion FILE|-`.

    Raises:
        click.BadParameter: the file can't be read as UTF-8.
    """
    if file == "-":
        return sys.stdin.read()
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise click.BadParameter(str(error), param_hint="--completion") from error
