"""Assertion blocks that can't be taken apart: the block runs in a jail of its own, and calls the
candidate, which sits in another one, by plain values.

Called by the judge. A jail takes one input and gives one answer, so the block is run again with
the answers known so far until it asks for nothing new; its random numbers are seeded, so it asks
for the same each time.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from prime_core.api import Execution, Jail, JailInput, Program
from prime_verifier_code import marshalling
from prime_verifier_code.assertions import Call
from prime_verifier_code.problem import Problem, ProblemError
from prime_verifier_code.verdicts import TestStatus, TestVerdict, verdict_of

BATCH = 500  # calls that one round may ask for
MAX_ROUNDS = 300  # calls that each depend on the one before
MAX_ANSWERS = 4 << 20  # characters of all answers together, as JSON
MAX_ERROR = 16_000  # characters of an exception's text, and of its arguments
BLOCK_SHARE = 20  # CPU of all calls and rounds together, in limits of one test
SEED = 0
ERRORS = frozenset(
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
)
STOPS = ("StopIteration", "StopAsyncIteration")

# Standard modules that tests of public data sets use without importing them.
PRELUDE = """
import bisect, collections, copy, functools, heapq, itertools, math, random, re, string, sys
from typing import *
"""

# `Hole` stands for an answer that isn't known yet, so that one round finds every call that doesn't
# depend on another's answer. Nothing is decided while there is one.
HARNESS = """
class _PrimeHole:
    def _hole(self, *args, **kwargs):
        return self
    def __bool__(self):
        return True
    def __float__(self):
        return 1.0
    def __int__(self):
        return 1
    __index__ = __int__
    def __iter__(self):
        return iter(())
    def __len__(self):
        return 0
    def __hash__(self):
        return 0
    def __contains__(self, item):
        return True
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self
for _name in (
    "add radd sub rsub mul rmul truediv rtruediv floordiv rfloordiv mod rmod pow rpow and rand or "
    "ror xor rxor lshift rlshift rshift rrshift neg pos abs invert round floor ceil trunc eq ne lt "
    "le gt ge getitem call"
).split():
    setattr(_PrimeHole, f"__{_name}__", _PrimeHole._hole)
del _name


class _PrimeStop(BaseException):
    pass


def _prime_error(name, text, args):
    kind = getattr(__import__("builtins"), name)
    args = _prime_decode(args)
    try:
        error = kind.__new__(kind, *args)
    except Exception:  # one that can't do without its own arguments
        kind, args = Exception, [text]
        error = Exception(text)
    if str(error) != text:
        kind = type(name, (kind,), {"__str__": lambda self: text})
        error = kind.__new__(kind, *args)
    return error


def _prime_block(known, speculate, limit):
    import random
    random.seed(SEED)
    asked, names, wanted, stuck = [0], globals(), [], []

    def candidate(*args, **kwargs):
        number = asked[0]
        asked[0] += 1
        request = [_prime_encode(list(args)), _prime_encode(kwargs)]
        if not wanted and number < len(known) and known[number][:2] == request:
            kind, payload = known[number][2:]
            if kind == "raised":
                raise _prime_error(*payload)
            return _prime_decode(payload)
        if not _plain(request):
            if wanted:
                raise _PrimeStop()
            stuck.append("result" if _prime_came_back(request) else "argument")
            raise TypeError("this argument can't cross into the program's jail")
        wanted.append([number, *request])
        if not speculate or len(wanted) >= limit:
            raise _PrimeStop()
        return _PrimeHole()

    def _plain(value):
        if type(value) is list:
            return all(_plain(item) for item in value)
        if type(value) is dict:
            return all(_plain(item) for item in value.values())
        return value is None or type(value) in (bool, int, float, str)

    names["candidate"] = names[ENTRY_POINT] = candidate
    try:
        exec(compile(BLOCK, "tests", "exec"), names)
        if callable(names.get("check")) and not CALLS_CHECK:
            names["check"](candidate)
        outcome = "holds"
    except _PrimeStop:
        outcome = "stopped"
    except AssertionError:
        outcome = "fails"
    except Exception as error:
        outcome = "error:" + type(error).__name__ + ":" + str(error)[:200]
    if wanted:
        return {"wanted": wanted}
    return {"outcome": outcome, "stuck": stuck[:1]}


def _prime_came_back(value):
    if type(value) is list:
        return any(map(_prime_came_back, value))
    if type(value) is dict:
        return any(map(_prime_came_back, value.values()))
    return type(value) is _PrimeOpaque
"""


@dataclass(frozen=True, slots=True)
class Failure:
    """A call that gave no value.

    Attributes:
        status: why.
        detail: a short reason.
        error: the built-in exception that it raised, "" for another end.
        said: the exception's text.
        args: its arguments.
    """

    status: TestStatus
    detail: str = ""
    error: str = ""
    said: str = ""
    args: tuple[Any, ...] = ()


def read_answer(done: Execution) -> object:
    """The value that the gate let through, or a `Failure`."""
    if done.status != "ok":
        verdict = verdict_of(done)
        return Failure(verdict.status, verdict.detail)
    answer = done.result
    if type(answer) is not dict or len(answer) != 1:
        return Failure("bad_result_type")
    ((kind, payload),) = answer.items()
    if kind == "missing":
        return Failure("no_entry_point")
    if kind == "raised":
        return _read_error(payload)
    if type(payload) is not list or len(payload) != 1:
        return Failure("bad_result_type")
    if kind == "truth":
        return marshalling.Opaque(payload[0] is True)
    try:
        return marshalling.decode(payload[0])
    except ValueError as error:
        return Failure("bad_result_type", str(error))


def _read_error(payload: Any) -> Failure:
    """An exception, as far as it may enter the block's jail."""
    if type(payload) is not list or len(payload) != 3:
        return Failure("bad_result_type")
    name, said, args = payload
    if type(name) is not str or name not in ERRORS or type(said) is not str:
        return Failure("bad_result_type")
    if type(args) is not list or marshalling.size(args) > MAX_ERROR:
        return Failure("bad_result_type")
    try:
        decoded = tuple(marshalling.decode(args))
    except ValueError as error:
        return Failure("bad_result_type", str(error))
    # Raised from `map` or `iter` in the block, it would end the block's loop as if all were
    # done. A generator makes the same of it (PEP 479).
    name = "RuntimeError" if name in STOPS else name
    return Failure("runtime_error", "exception", name, said[:MAX_ERROR], decoded)


def program(problem: Problem) -> Program:
    """The block as a program; the candidate's code is not in it."""
    constants = (
        f"SEED = {SEED}\nBLOCK = {problem.assertions!r}\nENTRY_POINT = {problem.fn_name!r}\n"
        f"CALLS_CHECK = {_calls_check(problem.assertions)!r}\n"
    )
    prelude = f"{PRELUDE}{problem.context}\n{marshalling.GATE}"
    return Program(constants + HARNESS, kind="call", entry="_prime_block", prelude=prelude)


def _calls_check(block: str) -> bool:
    return any(line.startswith("check(") for line in block.splitlines())


def judge_block(
    block: Jail, ask: Callable[[Call], tuple[Execution, object]], limit: float
) -> TestVerdict:
    """Run the block until it needs no further answer.

    Args:
        block: the jail that holds the block.
        ask: calls the candidate.
        limit: CPU seconds of one test.

    Raises:
        ProblemError: the block itself is broken.
        SandboxError: a jail failed.
    """
    known: list[Any] = []
    cpu, rounds_cpu, memory, size, speculate = 0.0, 0.0, 0, 0, True
    for _ in range(MAX_ROUNDS):
        done = block.run(JailInput(args=(known, speculate, BATCH)))
        rounds_cpu += done.cpu_seconds
        if known and cpu + rounds_cpu > BLOCK_SHARE * limit:
            return TestVerdict("time_limit", cpu, memory, "all calls together")
        if done.status != "ok" and speculate:
            speculate = False  # a guess led the block astray, into an endless loop perhaps
            continue
        if done.status != "ok" or type(done.result) is not dict:
            if known:
                # Answers led it there: a program mustn't get out of a verdict by being odd.
                return TestVerdict("wrong_answer", cpu, memory, f"block: {done.status}")
            raise ProblemError(f"the block of assertions ended as {done.status}: {done.detail}")
        wanted = done.result.get("wanted")
        if not wanted:
            return _verdict(done.result, bool(known), cpu, memory)
        del known[wanted[0][0] :]
        for place, (_, args, kwargs) in enumerate(wanted):
            try:
                call = _call(args, kwargs)
            except ValueError as error:
                if known:  # made of an answer, perhaps of one that was chosen for it
                    return TestVerdict("wrong_answer", cpu, memory, f"an argument: {error}")
                raise ProblemError(f"the block calls with what can't be rebuilt: {error}") from None
            execution, answer = ask(call)
            cpu += execution.cpu_seconds
            memory = max(memory, execution.peak_memory)
            if not isinstance(answer, Failure):
                encoded = marshalling.encode(answer)
                size += marshalling.size(encoded)
                if size > MAX_ANSWERS:
                    return TestVerdict("output_limit", cpu, memory, "all answers together")
                known.append([args, kwargs, "value", encoded])
            elif answer.error:
                raised = [answer.error, answer.said, marshalling.encode(list(answer.args))]
                known.append([args, kwargs, "raised", raised])
            elif place == 0:
                return TestVerdict(answer.status, cpu, memory, answer.detail)
            else:
                break  # only the first call is certain to be made; the next round asks again
    return TestVerdict("time_limit", cpu, memory, f"block: more than {MAX_ROUNDS} rounds")


def _call(args: Any, kwargs: Any) -> Call:
    return Call(tuple(marshalling.decode(args)), marshalling.decode(kwargs))


def _verdict(result: dict[str, Any], called: bool, cpu: float, memory: int) -> TestVerdict:
    outcome = str(result.get("outcome"))
    stuck = result.get("stuck")
    if stuck == ["result"]:
        # The program's own result went back in, one of which nothing but its truth is known.
        return TestVerdict("bad_result_type", cpu, memory)
    if stuck:
        raise ProblemError("the block of assertions calls with what is no plain value")
    if not called:
        raise ProblemError(f"the block of assertions can't be judged by: {outcome[:200]}")
    status: TestStatus = "ok" if outcome == "holds" else "wrong_answer"
    return TestVerdict(status, cpu, memory)
