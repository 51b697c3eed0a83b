"""The schema of APPS and TACO: input_output with inputs, outputs and, for functions, fn_name.

Called by `read_problem`; takes the column as text or as a dict, or its parts as columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def read(data: Mapping[str, Any]) -> dict[str, Any]:
    """One test per input and output."""
    packed = data.get("input_output", data)
    content: Mapping[str, Any] = json.loads(packed) if isinstance(packed, str) else packed
    inputs, outputs = content["inputs"], content["outputs"]
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise ValueError("inputs and outputs are lists")
    if len(inputs) != len(outputs):
        raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs")
    name = content.get("fn_name")
    pairs = list(zip(inputs, outputs, strict=True))
    if name:
        tests = [{"input": given, "output": _result(wanted)} for given, wanted in pairs]
        # The platforms of these problems import the usual modules before the solution.
        return {"type": "function", "fn_name": name, "tests": tests, "prelude": "stdlib"}
    return {
        "type": "stdin",
        "tests": [{"input": _text(given), "output": _text(wanted)} for given, wanted in pairs],
    }


def _text(value: Any) -> Any:
    """Some rows hold a list of lines."""
    return "\n".join(map(str, value)) if isinstance(value, list) else value


def _result(wanted: Any) -> Any:
    """Results are wrapped into a list of one item throughout these data sets."""
    return wanted[0] if isinstance(wanted, list) and len(wanted) == 1 else wanted
