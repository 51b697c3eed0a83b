"""The schema of LiveCodeBench: public and private test cases, the private ones possibly packed.

Called by `read_problem`; arguments of a functional test are lines of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from prime_verifier_code.schemas.packed_tests import unpack_tests


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """Public tests, then private ones."""
    cases = [
        *_cases(data.get("public_test_cases")),
        *_cases(data.get("private_test_cases")),
    ]
    kinds = {case.get("testtype", "stdin") for case in cases}
    if kinds == {"stdin"}:
        rows = [{"input": case["input"], "output": case["output"]} for case in cases]
        return {"type": "stdin", "tests": rows}
    if kinds != {"functional"}:
        raise ValueError(f"test cases of types {', '.join(sorted(map(str, kinds))) or 'none'}")
    # The platform imports the usual modules before the solution.
    return {
        "type": "function",
        "fn_name": _function(data),
        "tests": [_functional(case) for case in cases],
        "prelude": "stdlib",
    }


def _cases(value: Any) -> list[dict[str, Any]]:
    if value is None or value == "":
        return []
    if isinstance(value, str):
        value = json.loads(value) if value.lstrip()[:1] == "[" else unpack_tests(value)
        if isinstance(value, str):  # the pickle holds JSON text
            value = json.loads(value)
    if not isinstance(value, list) or not all(isinstance(case, dict) for case in value):
        raise ValueError("test cases are no list of dicts")
    return value


def _function(data: Mapping[str, Any]) -> Any:
    metadata = data.get("metadata") or {}
    if isinstance(metadata, str):
        metadata = json.loads(metadata)
    return metadata["func_name"]


def _functional(case: Mapping[str, Any]) -> dict[str, Any]:
    lines = [line for line in case["input"].split("\n") if line.strip()]
    return {"input": [json.loads(line) for line in lines], "output": json.loads(case["output"])}
