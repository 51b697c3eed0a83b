"""Checkers for problems with several right answers: trusted code that reads the program's output.

Called by the judge instead of the comparison rules. A checker that came with the data runs in a
jail of its own; one that an environment hands over is that environment's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any

from prime_core.api import Jail, JailInput, Limits, Program, Sandbox, SandboxError
from prime_verifier_code.problem import CheckerSource, ProblemError
from prime_verifier_code.value_rules import key_text

# (input, expected, output) -> right; output is text of a program, or a function's plain value.
Checker = Callable[[Any, Any, Any], bool]

# A checker is trusted to be right, not to be quick: its limits are its own.
CHECKER_LIMITS = Limits(cpu_seconds=20.0, memory_mb=1024, output_bytes=1 << 20)


def open_checker(
    wanted: CheckerSource | None,
    known: Mapping[str, Checker],
    sandbox: Sandbox,
    stack: ExitStack,
) -> Checker | None:
    """The checker that a problem asks for, or None where it asks for none.

    Args:
        wanted: the problem's wish.
        known: checkers by name.
        sandbox: where a checker that came as source runs.
        stack: closes the checker's jail.

    Raises:
        ProblemError: there is no checker of that name.
    """
    if wanted is None:
        return None
    if wanted.name is not None:
        if wanted.name not in known:
            raise ProblemError(f"there is no checker {wanted.name!r}, only {sorted(known)}")
        return _steady(_in_process(known[wanted.name]))
    assert wanted.source is not None
    program = Program(wanted.source, kind="call", entry="check")
    return _steady(_in_jail(stack.enter_context(sandbox.open(program, CHECKER_LIMITS))))


# A checker's answer, or a word on how it ended without one.
Attempt = Callable[[Any, Any, Any], bool | str]


def _in_jail(jail: Jail) -> Attempt:
    def attempt(given: Any, expected: Any, output: Any) -> bool | str:
        done = jail.run(JailInput(args=(given, expected, _plain(output))))
        return done.result if done.status == "ok" and type(done.result) is bool else done.status

    return attempt


def _in_process(checker: Checker) -> Attempt:
    def attempt(given: Any, expected: Any, output: Any) -> bool | str:
        try:
            return bool(checker(given, expected, output))
        except Exception as error:  # noqa: BLE001 - whatever an environment's own code raises
            return type(error).__name__

    return attempt


def _steady(attempt: Attempt) -> Checker:
    """A checker that an output can't break: a program mustn't get out of a verdict by being odd.

    One that ends without an answer is asked about the expected output, then about None. If it has
    an answer there it works, and the odd output is wrong; else it is broken.
    """

    def check(given: Any, expected: Any, output: Any) -> bool:
        found = attempt(given, expected, output)
        if isinstance(found, bool):
            return found
        if any(isinstance(attempt(given, expected, known), bool) for known in (expected, None)):
            return False
        raise SandboxError(
            f"the problem's checker ended as {found}, with no True or False",
            where="checker of the problem",
            fix="make check(input, expected, output) return a bool for every output",
        )

    return check


def _plain(value: Any) -> Any:
    """A candidate's value as the JSON that crosses into the checker's jail: tuples as lists, keys
    as text."""
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key_text(key): _plain(item) for key, item in value.items()}
    return value
