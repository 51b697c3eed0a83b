"""The schemas of HumanEval and MBPP: blocks of assertions.

Called by `read_problem`; HumanEval's prompt is the program's own first part, and also what its
tests may use.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from prime_verifier_code.assertions import called_function


def read_humaneval(data: Mapping[str, Any]) -> dict[str, Any]:
    """Columns prompt, entry_point and test."""
    return {
        "type": "assertions",
        "fn_name": data["entry_point"],
        "assertions": data["test"],
        "context": data.get("prompt", ""),
    }


def read_mbpp(data: Mapping[str, Any]) -> dict[str, Any]:
    """Columns test_list, and test_imports or test_setup_code where there are any."""
    setup = data.get("test_setup_code") or ""
    imports = data.get("test_imports") or []
    block = "\n".join([setup, *imports, *data["test_list"]]).replace("\r\n", "\n").strip("\n")
    name = called_function(block)
    if name is None:
        raise ValueError("the assertions call no function of the program")
    return {"type": "assertions", "fn_name": name, "assertions": block}
