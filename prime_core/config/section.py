"""What every section of a run config is made of: strict models, plugin choices, types of TOML.

Imported by the modules of the sections; `sections` offers it all under one name. Nothing here
imports anything heavier than pydantic.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

# names that become file names: labels, run names
NAME = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"

# TOML has neither paths nor tuples, so these two accept a string and an array
FilePath = Annotated[Path, Field(strict=False)]
Beta = Annotated[float, Field(ge=0, lt=1)]
Betas = Annotated[tuple[Beta, Beta], Field(strict=False)]


class Refusal(ValueError):
    """A value that can't work, with its fix; a validator raises it, `problems` shows both."""

    def __init__(self, what: str, fix: str) -> None:
        self.what = what
        self.fix = fix
        super().__init__(f"{what}; {fix}")


class Section(BaseModel):
    """Base of all sections: unknown keys refused, values frozen, no guessing between types.

    Strict, because lax pydantic reads "3", 3.0 and true as the integer 3 or 1.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, strict=True, allow_inf_nan=False
    )


class PluginChoice(Section):
    """Which plugin a slot uses, which versions of its distribution will do, and its parameters."""

    use: str = Field(pattern=NAME, description="name of the plugin")
    version: str = Field(
        default="", description="version specifier its distribution must meet, e.g. >=0.1"
    )
    params: dict[str, Any] = Field(
        default_factory=dict, alias="with", description="parameters of the plugin"
    )
