"""The judge: runs a program's tests in a jail and compares outside it.

Called by the verifier. Invariant: what is expected never crosses into a jail in which the
candidate's code runs, and a jail that fails raises `SandboxError` instead of deciding anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from prime_core.api import Execution, Jail, JailInput, Limits, Program, Sandbox
from prime_verifier_code import marshalling, replay
from prime_verifier_code.assertions import Assertion, Call, take_apart
from prime_verifier_code.checkers import Checker
from prime_verifier_code.expressions import Unsupported
from prime_verifier_code.preludes import PRELUDES
from prime_verifier_code.problem import Problem, TestRow
from prime_verifier_code.text_rules import TextRules, same_text
from prime_verifier_code.value_rules import ValueRules, same_value
from prime_verifier_code.verdicts import Judgement, TestStatus, TestVerdict, verdict_of


@dataclass(frozen=True, slots=True)
class Options:
    """What the verifier's parameters say about running and comparing.

    Attributes:
        limits: of one test.
        text: rules for standard output.
        values: rules for returned values.
        total_cpu: CPU seconds of all tests together, or None.
        max_tests: at most this many, those with the longest inputs, or None.
        every_test: go on after the first failure.
    """

    limits: Limits
    text: TextRules
    values: ValueRules
    total_cpu: float | None = None
    max_tests: int | None = None
    every_test: bool = False


Opener = Callable[[Program], Jail]


def judge(
    problem: Problem, code: str, sandbox: Sandbox, checker: Checker | None, options: Options
) -> Judgement:
    """Run and compare.

    Args:
        problem: the problem.
        code: the candidate's program, cleaned.
        sandbox: where it runs.
        checker: decides instead of the comparison rules, where the problem has one.
        options: limits and rules.

    Raises:
        SandboxError: a jail failed.
        ProblemError: the problem's own block or checker is broken.
    """

    def open_jail(program: Program) -> Jail:
        return sandbox.open(program, options.limits)

    if problem.type == "assertions":
        return _judge_assertions(problem, code, open_jail, options)
    rows, left_out = _chosen(problem.tests, options.max_tests)
    kind = _script if problem.type == "stdin" else _call
    program = _program(problem, code)
    with open_jail(program) as jail:
        verdicts = (kind(jail, row, checker, options) for row in rows)
        taken = _until_failure(verdicts, options)
    return Judgement(taken, len(problem.tests), left_out)


def _program(problem: Problem, code: str) -> Program:
    prelude = PRELUDES[problem.names]
    if problem.type == "stdin":
        return Program(code, prelude=prelude)
    assert problem.fn_name is not None
    return Program(code, kind="call", entry=problem.fn_name, prelude=prelude + problem.context)


def _chosen(rows: Sequence[TestRow], limit: int | None) -> tuple[list[TestRow], int]:
    """The rows with the longest inputs, in their own order, and how many were left out."""
    if limit is None or len(rows) <= limit:
        return list(rows), 0
    by_length = sorted(range(len(rows)), key=lambda i: (-len(str(rows[i].input)), i))
    kept = sorted(by_length[:limit])
    return [rows[i] for i in kept], len(rows) - limit


def _until_failure(verdicts: Iterator[TestVerdict], options: Options) -> tuple[TestVerdict, ...]:
    taken: list[TestVerdict] = []
    spent = 0.0
    for verdict in verdicts:
        spent += verdict.cpu_seconds
        if options.total_cpu is not None and spent > options.total_cpu:
            taken.append(TestVerdict("time_limit", verdict.cpu_seconds, detail="total cpu"))
            break
        taken.append(verdict)
        if verdict.status != "ok" and not options.every_test:
            break
        if verdict.status in ("compile_error", "no_entry_point"):
            break  # it would be the same in every other test
    return tuple(taken)


def _script(jail: Jail, row: TestRow, checker: Checker | None, options: Options) -> TestVerdict:
    done = jail.run(JailInput(stdin=row.input.encode("utf-8")))
    if done.status != "ok":
        return verdict_of(done)
    if checker is not None:
        try:
            text = done.stdout.decode("utf-8")
        except UnicodeDecodeError:
            return verdict_of(done, "wrong_answer")
        return verdict_of(done, _right(checker(row.input, row.output, text)))
    accepted = (row.output, *row.accepted)
    return verdict_of(done, _right(any(same_text(done.stdout, e, options.text) for e in accepted)))


def _call(jail: Jail, row: TestRow, checker: Checker | None, options: Options) -> TestVerdict:
    done = jail.run(JailInput(args=tuple(row.input)))
    if done.status != "ok":
        return verdict_of(done)
    if checker is not None:
        return verdict_of(done, _right(checker(row.input, row.output, done.result)))
    accepted = (row.output, *row.accepted)
    return verdict_of(
        done, _right(any(same_value(done.result, e, options.values) for e in accepted))
    )


def _right(right: bool) -> TestStatus:
    return "ok" if right else "wrong_answer"


# --- assertion blocks ----------------------------------------------------------------------------


def _judge_assertions(
    problem: Problem, code: str, open_jail: Opener, options: Options
) -> Judgement:
    assert problem.fn_name is not None
    program = Program(
        code,
        kind="call",
        entry=marshalling.ENTRY,
        prelude=f"{PRELUDES[problem.names]}{problem.context}\n{marshalling.GATE}",
    )
    try:
        assertions = take_apart(problem.assertions, problem.fn_name)
    except Unsupported:
        return _judge_in_second_jail(problem, program, open_jail, options.limits.cpu_seconds)
    kept = list(islice(assertions, options.max_tests))
    with open_jail(program) as jail:
        verdicts = (_assertion(jail, problem.fn_name, each) for each in kept)
        taken = _until_failure(verdicts, options)
    return Judgement(taken, len(assertions), len(assertions) - len(kept), "taken_apart")


def _assertion(jail: Jail, name: str, assertion: Assertion) -> TestVerdict:
    results = []
    cpu = 0.0
    for call in assertion.calls:
        done, answer = call_candidate(jail, name, call)
        cpu += done.cpu_seconds
        if isinstance(answer, replay.Failure):
            return TestVerdict(answer.status, cpu, done.peak_memory, answer.detail)
        results.append(answer)
    status: TestStatus = "ok"
    if not assertion.holds(results):
        opaque = any(isinstance(result, marshalling.Opaque) for result in results)
        status = "bad_result_type" if opaque else "wrong_answer"
    return TestVerdict(status, cpu, done.peak_memory)


def call_candidate(jail: Jail, name: str, call: Call) -> tuple[Execution, object]:
    """One call behind the gate: what it led to, and its value or a `Failure`."""
    args = marshalling.encode(list(call.args))
    kwargs = marshalling.encode(dict(call.kwargs))
    done = jail.run(JailInput(args=(name, args, kwargs)))
    return done, replay.read_answer(done)


def _judge_in_second_jail(
    problem: Problem, program: Program, open_jail: Opener, limit: float
) -> Judgement:
    assert problem.fn_name is not None
    name = problem.fn_name
    with open_jail(program) as candidate, open_jail(replay.program(problem)) as block:
        verdict = replay.judge_block(
            block, lambda call: call_candidate(candidate, name, call), limit
        )
    return Judgement((verdict,), 1, 0, "second_jail")
