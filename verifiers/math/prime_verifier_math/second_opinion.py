"""What math-verify says of the same completion: an audit, never a part of a verdict.

Called by `prime-core verify math --second-opinion`; the package is optional, the extra
`second-opinion` of this distribution.
"""

from __future__ import annotations

from prime_core.api import PluginError

THOUGHT = "</think>"


def math_verify_says(gold: str, text: str) -> float | None:
    r"""1 or 0 as math-verify has it; None where it can't read the gold.

    The gold is given in a box and the completion from its last </think> on, which is how it does
    best; its own time limits hold (5 s a step), and need the main thread.

    Raises:
        PluginError: math-verify isn't installed.
    """
    try:
        from math_verify import parse, verify
    except ImportError as error:
        raise PluginError(
            f"math-verify can't be imported: {error}",
            plugin="verifier.math",
            distribution="prime-verifier-math",
            phase="working",
            fix="pip install 'prime-verifier-math[second-opinion]'",
        ) from error
    wanted = parse(rf"\boxed{{{gold}}}")
    if not wanted:
        return None
    return 1.0 if verify(wanted, parse(text.rpartition(THOUGHT)[2])) else 0.0
