"""The signed record of one published version: digests of everything it stands for.

`publish` signs one, the index is derived from them, `install` and a run's `[plugins]` rules read
them. A record that reads was signed by the address it names and obeys its bounds.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Annotated, Generic, Literal, TypeVar

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from prime_core.api.errors import FormatError
from prime_core.signing import Signer, canonical, read_signed, signed_bytes

RECORD_LIMIT = 4 * 2**20  # bytes of a record
LEVELS = ("none", "bronze", "silver", "gold")

Hex32 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}\z")]
Line = Annotated[str, Field(max_length=2000)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
Moment = Annotated[int, Field(ge=0, lt=253_402_300_800)]  # seconds since 1970, before year 10000
Level = Literal["none", "bronze", "silver", "gold"]
S = TypeVar("S", bound="Statement")


class Part(BaseModel):
    """Base of what a statement holds: unknown fields refused, values frozen, no guessing."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class Signed(Generic[S]):
    """A statement that was verified.

    Attributes:
        value: what it says.
        signer: the address that signed it.
        sha256: of its bytes, signature included.
    """

    value: S
    signer: str
    sha256: str


class Statement(Part):
    """Base of signed messages: canonical JSON with `signer` and `signature`."""

    def sign(self, signer: Signer) -> bytes:
        """The bytes of the object."""
        return signed_bytes(signer, self.model_dump(mode="json"))

    @classmethod
    def read(cls: type[S], data: bytes, expected: str | None, *, where: str) -> Signed[S]:
        """Verify and parse.

        Raises:
            FormatError: not the canonical JSON of such a statement.
            IntegrityError: not signed by the address it names, or not by `expected`.
        """
        found = read_signed(data, expected, where=where)
        try:
            value = cls.model_validate_json(canonical(found.payload))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            field = ".".join(str(part) for part in first["loc"]) or "the whole"
            raise FormatError(
                f"not a {cls.__name__}: {field}: {first['msg']}",
                where=where,
                fix="it was written by another version of prime-core, or by something else",
            ) from error
        return Signed(value, found.signer, hashlib.sha256(data).hexdigest())


class Plugin(Part):
    """One entry point of group prime_core."""

    kind: Line
    name: Line
    module: Line


class Dependency(Part):
    """A distribution that the check ran with; `sha256` covers its installed files."""

    name: Line
    version: Line
    sha256: Hex32


class Data(Part):
    """A file of the wheel that isn't Python."""

    path: Line
    sha256: Hex32


class Dataset(Part):
    """The data set that an environment declares, with its default parameters."""

    environment: Line
    tasks: Count
    sha256: Hex32


class Check(Part):
    """What `prime-core check` said.

    Attributes:
        level: the level that was asked for and passed; none where nothing was checked.
        checker: the checker's version; "" where nothing was checked.
        passed: how many rules passed.
        exempt: ids of the rules that checks.toml exempts.
    """

    level: Level
    checker: Line = ""
    passed: Count = 0
    exempt: tuple[Line, ...] = ()


class Publication(Statement):
    """What a publisher says of one version of a distribution.

    Attributes:
        name: normalised.
        filename, sha256, size: the wheel.
        metadata_sha256: of its METADATA, which resolvers fetch alone.
        source_sha256: over its Python files, see `wheel.tree_digest`.
        report_sha256, card_sha256: of the check's report and of what the catalogue shows.
        published_at: seconds since 1970, UTC.
    """

    format: Literal["prime-core/publication/1"] = "prime-core/publication/1"
    name: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,98}[a-z0-9])?\z")]
    version: Annotated[str, Field(pattern=r"^[a-z0-9.+]{1,100}\z")]
    filename: Line
    sha256: Hex32
    size: Count
    metadata_sha256: Hex32
    source_sha256: Hex32
    report_sha256: Hex32
    card_sha256: Hex32
    requires_python: Line
    requires: tuple[Line, ...]
    summary: Line
    licence: Line
    plugins: tuple[Plugin, ...]
    data: tuple[Data, ...]
    datasets: tuple[Dataset, ...]
    dependencies: tuple[Dependency, ...]
    check: Check
    published_at: Moment

    @model_validator(mode="after")
    def _names_agree(self) -> Publication:
        try:
            name, version, _, _ = parse_wheel_filename(self.filename)
        except InvalidWheelFilename as error:
            raise ValueError(str(error)) from error
        if (canonicalize_name(name), str(version)) != (self.name, self.version):
            raise ValueError(f"file {self.filename} isn't of {self.name} {self.version}")
        return self


class Owner(Statement):
    """Who published the first version of a name, and so may publish the others."""

    format: Literal["prime-core/owner/1"] = "prime-core/owner/1"
    name: Line


class Yank(Statement):
    """That a version shouldn't be installed any more, and why."""

    format: Literal["prime-core/yank/1"] = "prime-core/yank/1"
    name: Line
    version: Line
    sha256: Hex32
    reason: Annotated[str, Field(min_length=1, max_length=500)]
    yanked_at: Moment
