"""The GENESYS schema of SYNTHETIC-1: verification_info with language and test_cases.

Called by `read_problem`; a problem of another language is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

STDIN_TYPES = ("stdin_stdout", "stdin", "")


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """Tests of one type; the fn_name of function calls must be the same in all."""
    language = str(data.get("language", "python")).lower()
    if language not in ("python", "python3"):
        raise ValueError(f"the language is {language}; only python is judged")
    cases = data["test_cases"]
    if not isinstance(cases, list) or not cases:
        raise ValueError("test_cases is no list, or an empty one")
    types = {str(case.get("type") or "") for case in cases}
    if types == {"function_call"}:
        names = {case["fn_name"] for case in cases}
        if len(names) != 1:
            raise ValueError(f"test_cases call {len(names)} functions")
        return {"type": "function", "fn_name": names.pop(), "tests": _rows(cases)}
    if types <= set(STDIN_TYPES):
        return {"type": "stdin", "tests": _rows(cases)}
    raise ValueError(f"test_cases of types {', '.join(sorted(types))}")


def _rows(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"input": case["input"], "output": case["output"]} for case in cases]
