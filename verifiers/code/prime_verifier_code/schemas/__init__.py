"""Schemas of public data sets, each a mapping into this verifier's own one.

Called by the verifier with a task's verification data; reading is strict, and what can't be read
is a `ProblemError`, never a problem without tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from pydantic import ValidationError

from prime_verifier_code.problem import Problem, ProblemError
from prime_verifier_code.schemas import apps, assertion_blocks, genesys, livecodebench

SchemaName = Literal["auto", "own", "genesys", "livecodebench", "apps", "humaneval", "mbpp"]

# What tells the schemas apart, in this order; each key is one that no other schema has.
MARKS: tuple[tuple[SchemaName, tuple[str, ...]], ...] = (
    ("genesys", ("test_cases",)),
    ("livecodebench", ("public_test_cases", "private_test_cases")),
    ("apps", ("input_output", "inputs")),
    ("humaneval", ("entry_point",)),
    ("mbpp", ("test_list",)),
    ("own", ("tests", "assertions")),
)
READERS: dict[SchemaName, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "genesys": genesys.read,
    "livecodebench": livecodebench.read,
    "apps": apps.read,
    "humaneval": assertion_blocks.read_humaneval,
    "mbpp": assertion_blocks.read_mbpp,
    "own": dict,
}
# Every schema may carry these beside its own columns.
OPTIONS = (*("prelude", "time_limit_s", "memory_mb", "text", "values", "checker", "min_isolation"),)


def read_problem(data: Mapping[str, Any], schema: SchemaName = "auto") -> Problem:
    """The problem in a task's verification data.

    Raises:
        ProblemError: no schema fits, or the data breaks the one that does.
    """
    given = data.get("schema", schema)
    name = _recognised(data) if given == "auto" else given
    if name not in READERS:
        raise ProblemError(f"the schema {name!r} is none of {', '.join(READERS)}")
    content = {key: value for key, value in data.items() if key != "schema"}
    try:
        fields = READERS[name](content)
        if name != "own":
            fields |= {key: content[key] for key in OPTIONS if _is_option(key, content)}
        return Problem.model_validate(fields)
    except ValidationError as error:
        # The input is left out: it may hold expected outputs, and this text is logged.
        first = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise ProblemError(f"schema {name}: {place}: {first['msg']}") from None
    except (KeyError, TypeError, IndexError) as error:
        raise ProblemError(f"schema {name}: {type(error).__name__}: {error}") from error
    except ValueError as error:
        raise ProblemError(f"schema {name}: {error}") from error


def _is_option(key: str, content: Mapping[str, Any]) -> bool:
    """Whether a column is an option: `text` as text is the problem's wording (MBPP)."""
    return key in content and not (key == "text" and isinstance(content[key], str))


def _recognised(data: Mapping[str, Any]) -> SchemaName:
    for name, keys in MARKS:
        if any(key in data for key in keys):
            return name
    raise ProblemError(f"verification data with {', '.join(sorted(data)[:12]) or 'nothing'} in it")
