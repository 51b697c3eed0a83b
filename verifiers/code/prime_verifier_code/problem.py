"""One problem as the judge sees it, whatever schema it came in.

Made by `schemas.read_problem` from a task's verification data; refuses what can't be judged, so
that a broken problem is an error and never a wrong answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, model_validator

from prime_core.api import Params
from prime_verifier_code.text_rules import TextRules
from prime_verifier_code.value_rules import ValueRules

Kind = Literal["stdin", "function", "assertions"]
Prelude = Literal["none", "typing", "stdlib"]
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$"


class ProblemError(ValueError):
    """Verification data that no program could be judged by."""


@dataclass(frozen=True, slots=True)
class Test:
    """One test.

    Attributes:
        input: text for standard input, or the list of positional arguments.
        output: what is expected: text, or a plain JSON value.
        accepted: further outputs that are right too.
    """

    input: Any
    output: Any
    accepted: tuple[Any, ...] = ()

    # pytest would take the class for a test of its own.
    __test__ = False


class TestRow(Params):
    """A test as data sets write it."""

    __test__ = False

    input: Any
    output: Any
    accepted: tuple[Any, ...] = ()


class CheckerSource(Params):
    """A checker for problems with several right answers: exactly one of name and source."""

    name: str | None = Field(default=None, description="a checker that the environment handed over")
    source: str | None = Field(
        default=None,
        description="Python that defines check(input, expected, output) -> bool; it runs in a jail "
        "of its own, where no candidate's code runs",
    )

    @model_validator(mode="after")
    def _one_origin(self) -> CheckerSource:
        if (self.name is None) == (self.source is None):
            raise ValueError("give exactly one of name and source")
        return self


class Problem(Params):
    """A problem in this verifier's own schema; every other schema is turned into it."""

    type: Kind
    fn_name: str | None = Field(default=None, pattern=IDENTIFIER, description="function to call")
    tests: tuple[TestRow, ...] = ()
    assertions: str = Field(default="", description="type assertions: the block's source")
    context: str = Field(
        default="", description="source that stands before the program, e.g. HumanEval's prompt"
    )
    prelude: Prelude | None = Field(
        default=None,
        description="names that the program may use without importing them; none for stdin, "
        "typing for the rest",
    )
    time_limit_s: float | None = Field(
        default=None, gt=0, le=3600, description="CPU seconds a test"
    )
    memory_mb: int | None = Field(default=None, ge=16, le=65536)
    text: TextRules | None = Field(default=None, description="comparison of standard output")
    values: ValueRules | None = Field(default=None, description="comparison of returned values")
    checker: CheckerSource | None = None
    min_isolation: str | None = Field(
        default=None, description="weakest isolation that may judge this"
    )

    @model_validator(mode="after")
    def _judgeable(self) -> Problem:
        if self.type == "assertions":
            if self.tests or not self.assertions.strip():
                raise ValueError("type assertions takes a block in assertions, and no tests")
        elif self.assertions:
            raise ValueError(f"type {self.type} takes tests, no assertions")
        elif not self.tests:
            raise ValueError("there is no test")
        if self.type != "stdin" and self.fn_name is None:
            raise ValueError(f"type {self.type} needs fn_name")
        if self.type == "stdin":
            self._check_texts()
        if self.type == "function" and not all(isinstance(row.input, list) for row in self.tests):
            raise ValueError("the input of a function test is the list of its arguments")
        if self.checker is not None and self.type == "assertions":
            raise ValueError("an assertion block is its own checker")
        return self

    def _check_texts(self) -> None:
        for row in self.tests:
            texts = [row.input, row.output, *row.accepted]
            if self.checker is not None:
                texts = [row.input]
            if not all(isinstance(text, str) for text in texts):
                raise ValueError("input and output of a stdin test are text")
        if self.checker is None and not any(
            str(text).strip() for row in self.tests for text in (row.output, *row.accepted)
        ):
            # A program that prints nothing would be right.
            raise ValueError("no test expects any output")

    @property
    def names(self) -> Prelude:
        """The prelude that applies."""
        return self.prelude or ("none" if self.type == "stdin" else "typing")
