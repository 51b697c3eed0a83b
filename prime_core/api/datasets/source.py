"""What a run config says about a data set: where it is, its pinned digest, and its columns.

Validated with the rest of the config, before anything is read; the columns are applied by
`mapping.py`.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from prime_core.api.datasets.split import Split
from prime_core.api.specs import Params

FieldName = Literal[
    "problem_id",
    "source",
    "task_type",
    "in_source_id",
    "prompt",
    "gold_standard_solution",
    "verification_info",
    "metadata",
]
SUFFIXES = (".jsonl", ".jsonl.gz", ".json", ".parquet")
TEMPLATE_PART = re.compile(r"\{\{|\}\}|\{([^{}]+)\}|[{}]")

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Column(Params):
    """Where a field's value comes from: exactly one of column, template and const."""

    column: str | None = Field(
        default=None, min_length=1, description="column, or dotted path into one"
    )
    template: str | None = Field(
        default=None, description="text with {column} in it; {{ and }} are literal braces"
    )
    const: Any = Field(default=None, description="the same value in every row")
    after: str | None = Field(
        default=None, min_length=1, description="keep what follows the last occurrence of this text"
    )

    @model_validator(mode="after")
    def _one_origin(self) -> Column:
        given = {"column", "template", "const"} & self.model_fields_set
        if len(given) != 1:
            raise ValueError(f"give exactly one of column, template and const, not {len(given)}")
        if self.template is not None:
            template_columns(self.template)
        return self

    @classmethod
    def of(cls, value: str | Column) -> Column:
        """The short form: text with a brace is a template, other text names a column."""
        if isinstance(value, Column):
            return value
        return cls(template=value) if "{" in value or "}" in value else cls(column=value)

    def names(self) -> list[str]:
        """The columns that it reads."""
        if self.template is not None:
            return template_columns(self.template)
        return [] if self.column is None else [self.column]


def template_columns(template: str) -> list[str]:
    """The columns that a template names.

    Raises:
        ValueError: a brace without its partner.
    """
    names = []
    for part in TEMPLATE_PART.finditer(template):
        if part[1] is not None:
            names.append(part[1])
        elif part[0] in "{}":
            raise ValueError(
                f"the template {template!r} has a lone {part[0]!r}; write a literal brace twice"
            )
    return names


class DatasetSource(Params):
    """A data set and how its rows become tasks.

    Rows follow the GENESYS schema unless `columns` says otherwise: problem_id, source, task_type,
    in_source_id, prompt (text or a list of messages), gold_standard_solution, verification_info
    and metadata (dicts, or text that holds one as JSON or Python literal).
    """

    url: str | tuple[str, ...] = Field(
        description="path, fsspec URL or hub://ORG/NAME[/FILE] of a .jsonl, .jsonl.gz, .json or "
        ".parquet file; a list is read as one data set"
    )
    revision: str | None = Field(
        None, description="commit of a hub data set, 40 hex digits; needed for hub:// URLs"
    )
    sha256: Sha256 | tuple[Sha256, ...] | None = Field(
        None, description="SHA-256 the file must have; a list where url is one"
    )
    columns: dict[FieldName, str | Column] = Field(
        default_factory=dict,
        description="field = column, dotted path, template like '{Body} {Question}', or a table",
    )
    metadata_columns: tuple[str, ...] = Field((), description="columns kept as task metadata")
    verification_columns: tuple[str, ...] = Field(
        (), description="columns kept as the verifier's data"
    )
    task_types: tuple[str, ...] = Field((), description="keep rows of these task types only")
    bad_rows: Literal["refuse", "skip"] = Field(
        "refuse", description="refuse: any bad row is an error; skip: it is left out and counted"
    )
    split: Split = Field(
        default_factory=Split, description="side of the data set, by hash of the task id"
    )
    limit: int | None = Field(None, ge=1, description="at most this many tasks, the first ones")

    @property
    def urls(self) -> tuple[str, ...]:
        """The files, in order."""
        return (self.url,) if isinstance(self.url, str) else self.url

    @property
    def digests(self) -> tuple[str | None, ...]:
        """The pinned digest of each file, None where there is none."""
        if self.sha256 is None:
            return (None,) * len(self.urls)
        return (self.sha256,) if isinstance(self.sha256, str) else self.sha256

    @model_validator(mode="after")
    def _parts_fit_together(self) -> DatasetSource:
        if not self.urls or "" in self.urls:
            raise ValueError("url names no file")
        for value in self.columns.values():
            if isinstance(value, str):
                template_columns(value)
        if len(self.digests) != len(self.urls):
            raise ValueError(f"{len(self.digests)} sha256 for {len(self.urls)} files; one a file")
        hub = [url for url in self.urls if url.startswith("hub://")]
        if hub and not re.fullmatch(r"[0-9a-f]{40}", self.revision or ""):
            raise ValueError(
                f"{hub[0]} needs revision, the 40 hex digits of a commit: a branch name moves"
            )
        if self.revision is not None and not hub:
            raise ValueError("revision belongs to hub:// URLs; pin other files with sha256")
        return self
