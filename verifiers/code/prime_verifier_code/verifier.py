"""The verifier: a completion's program, judged by a task's tests, becomes a `Score`.

Made by the factory in `__init__`; lives in an environment host. Invariant: value 1 only where
there is at least one test and every one passed; whatever keeps a verdict from being reached is
status error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from prime_core.api import (
    LEVELS,
    Completion,
    Isolation,
    Limits,
    Message,
    Sandbox,
    SandboxError,
    Score,
    Task,
    clean_source,
)
from prime_verifier_code.checkers import Checker, open_checker
from prime_verifier_code.extraction import Extracted, extract
from prime_verifier_code.judging import Options, judge
from prime_verifier_code.params import CodeParams
from prime_verifier_code.problem import Problem, ProblemError
from prime_verifier_code.schemas import read_problem
from prime_verifier_code.verdicts import NO_ANSWER, Judgement, TestVerdict

TRIES = 2  # a jail that failed is tried once more, in another one


class CodeVerifier:
    """Judges Python programs in a sandbox."""

    def __init__(
        self,
        params: CodeParams,
        sandbox: Sandbox,
        checkers: Mapping[str, Checker] | None = None,
    ) -> None:
        """Keep what is needed.

        Args:
            params: rules and limits.
            sandbox: at least as strong as `params.min_isolation`; the factory sees to that.
            checkers: an environment's own checkers, by the names that its problems use.
        """
        self._params = params
        self._sandbox = sandbox
        self._checkers = dict(checkers or {})

    def verify(self, task: Task, completion: Completion) -> Score:
        """Score the program in the completion's last turn."""
        return self.judge_data(task.verification, completion.text)

    def judge_data(self, data: Mapping[str, Any], text: str) -> Score:
        """Score a completion's text by a task's verification data."""
        extracted = extract(text, self._params.extraction)
        cleaning = {"rule": extracted.rule, "steps": ["extract", "clean_source"]}
        try:
            problem = read_problem(data, self._params.schema_name)
            isolation = self._isolation(problem)
            evidence = {"cleaning": cleaning, "isolation": isolation.evidence()}
            code = _code(problem, extracted)
            if code is None:
                return _no_code(problem, evidence)
            evidence["program"] = _digest(code)
            judgement = self._judge(problem, code)
        except ProblemError as error:
            return _error("problem", str(error), cleaning)
        except SandboxError as error:
            return _error("sandbox", str(error), cleaning)
        return self._score(judgement, evidence)

    def _isolation(self, problem: Problem) -> Isolation:
        isolation = self._sandbox.probe()
        wanted = problem.min_isolation
        if wanted is None:
            return isolation
        if wanted not in LEVELS:
            raise ProblemError(f"min_isolation {wanted!r} is none of {', '.join(LEVELS)}")
        if not isolation.at_least(wanted):
            raise SandboxError(
                f"this task asks for isolation {wanted!r}, this host holds {isolation.level!r}",
                where=f"sandbox {isolation.sandbox}",
                fix="run prime-core doctor sandbox and give the host what it lacks",
            )
        return isolation

    def _judge(self, problem: Problem, code: str) -> Judgement:
        options = self._options(problem)
        for attempt in range(1, TRIES + 1):
            try:
                with ExitStack() as stack:
                    checker = open_checker(problem.checker, self._checkers, self._sandbox, stack)
                    return judge(problem, code, self._sandbox, checker, options)
            except SandboxError:
                if attempt == TRIES:
                    raise
        raise AssertionError("every try returns or raises")

    def time_limit(self, task: Task) -> float:
        """CPU seconds that one test of a task may take.

        Raises:
            ProblemError: the task can't be read.
        """
        return self._time_limit(read_problem(task.verification, self._params.schema_name))

    def _time_limit(self, problem: Problem) -> float:
        if problem.time_limit_s is None:
            return self._params.time_limit_s
        return problem.time_limit_s * self._params.time_limit_scale

    def _options(self, problem: Problem) -> Options:
        params = self._params
        limits = Limits(
            cpu_seconds=self._time_limit(problem),
            memory_mb=problem.memory_mb or params.memory_mb,
            output_bytes=params.output_mb << 20,
        )
        return Options(
            limits,
            problem.text or params.text,
            problem.values or params.values,
            params.total_time_limit_s,
            params.max_tests,
            params.partial,
        )

    def _score(self, judgement: Judgement, evidence: dict[str, Any]) -> Score:
        evidence |= judgement.evidence()
        parts = {}
        if self._params.partial:
            parts["passed_share"] = judgement.passed / judgement.total
        if judgement.solved:
            return Score(1.0, parts=parts, evidence=evidence)
        if judgement.status in NO_ANSWER:
            return Score(0.0, "invalid_output", parts, evidence)
        return Score(0.0, parts=parts, evidence=evidence)

    # --- what `prime-core verify` shows ----------------------------------------------------------

    def from_case(self, row: Mapping[str, Any]) -> tuple[Task, Completion]:
        """One row of a case file: `problem` in any schema, and `completion`."""
        problem, text = row["problem"], row["completion"]
        prompt = (Message("user", str(problem.get("prompt", ""))),)
        return Task(str(row.get("id", "case")), prompt, verification=problem), Completion(text)


def _code(problem: Problem, extracted: Extracted) -> str | None:
    """The program's text; the indented body of a function continues the problem's context."""
    if extracted.code is None:
        return None
    code = clean_source(extracted.code)
    first = next(line for line in code.split("\n") if line.strip())
    if problem.context and first[0] in " \t":
        return problem.context + code
    return code


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()


def _no_code(problem: Problem, evidence: dict[str, Any]) -> Score:
    total = len(problem.tests) or 1
    judgement = Judgement((TestVerdict("no_code"),), total)
    return Score(0.0, "invalid_output", evidence=evidence | judgement.evidence())


def _error(kind: str, detail: str, cleaning: dict[str, Any]) -> Score:
    evidence = {"kind": kind, "detail": detail[:500], "cleaning": cleaning}
    return Score(None, "error", evidence=evidence)
