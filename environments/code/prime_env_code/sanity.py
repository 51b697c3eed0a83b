"""Is a problem fit to pay a reward for? Checks of a data set, without and with running programs.

Called by the environment on load. Invariant: a report names task ids and reasons, never an
expected output.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import prime_verifier_code
from prime_verifier_code import CodeVerifier, Problem, read_problem
from prime_verifier_code.assertions import take_apart
from prime_verifier_code.expressions import Unsupported

from prime_core.api import Completion, Task

UNDECIDED = "it can't be judged"
SHARE_OF_LIMIT = 0.25  # CPU time that a reference may take of a test's limit


def fenced(source: str) -> str:
    """A completion that answers with this program."""
    return f"```python\n{source.rstrip()}\n```\n"


def static_findings(task: Task) -> list[str]:
    """What is wrong with a problem's tests, without running anything."""
    problem = read_problem(task.verification)
    if problem.type == "assertions":
        return _assertion_findings(problem)
    if problem.checker is not None:
        return []
    outputs: dict[str, set[str]] = defaultdict(set)
    for row in problem.tests:
        if not row.accepted:
            outputs[json.dumps(row.input)].add(json.dumps(row.output))
    found = []
    if any(len(each) > 1 for each in outputs.values()):
        found.append("contradictory tests: one input, two outputs")
    distinct = {json.dumps(row.output) for row in problem.tests}
    if len(distinct) < 2:
        found.append(f"{len(problem.tests)} tests, {len(distinct)} distinct output")
    return found


def _assertion_findings(problem: Problem) -> list[str]:
    assert problem.fn_name is not None
    try:
        assertions = take_apart(problem.assertions, problem.fn_name)
    except Unsupported:
        return []  # only running tells
    wanted: dict[str, set[str]] = defaultdict(set)
    for each in assertions:
        expression = ast.unparse(each.expression)
        if isinstance(each.expression, ast.Compare) and "result_0 ==" in expression:
            wanted[repr(each.calls)].add(expression)
    found = []
    if any(len(each) > 1 for each in wanted.values()):
        found.append("contradictory tests: one call, two results")
    distinct = {ast.dump(each.expression) for each in assertions}
    if len(distinct) < 2:
        found.append(f"{len(assertions)} assertions, {len(distinct)} distinct result")
    return found


def full_findings(task: Task, verifier: CodeVerifier) -> list[str]:
    """What running shows: the reference passes in time, programs that don't look don't."""
    problem = read_problem(task.verification)
    found = []
    if task.gold is not None:
        found += _reference_findings(task, verifier)
    for name, source in careless_programs(problem).items():
        if verifier.verify(task, Completion(fenced(source))).value == 1.0:
            found.append(f"the {name} program passes")
    return found


def _reference_findings(task: Task, verifier: CodeVerifier) -> list[str]:
    assert task.gold is not None
    text = task.gold if "```" in task.gold else fenced(task.gold)
    score = verifier.verify(task, Completion(text))
    if score.status == "error":
        return [f"{UNDECIDED}: {score.evidence.get('detail')}"]
    if score.value != 1.0:
        return [f"the reference doesn't pass: {score.evidence.get('status')}"]
    slowest = max((each["cpu_ms"] / 1000 for each in score.evidence["results"]), default=0.0)
    limit = verifier.time_limit(task)
    if slowest > SHARE_OF_LIMIT * limit:
        return [f"the reference takes {slowest:.2f} s of CPU, the limit is {limit:g} s"]
    return []


def careless_programs(problem: Problem) -> dict[str, str]:
    """Programs that solve nothing: empty, echo, and constants."""
    if problem.type == "stdin":
        constant = _most_frequent(problem)
        return {
            "empty": "pass",
            "echo": "import sys\nsys.stdout.write(sys.stdin.read())",
            "constant": f"print({constant!r})",
        }
    name = problem.fn_name
    head = f"def {name}(*args, **kwargs):\n    return "
    programs = {"empty": head + "None", "echo": head + "args[0] if args else None"}
    if problem.type == "function":
        return programs | {"constant": head + repr(_most_frequent(problem))}
    constants = ("True", "False", "0", "1", "''", "[]")
    return programs | {f"constant {constant}": head + constant for constant in constants}


def _most_frequent(problem: Problem) -> Any:
    counts = Counter(json.dumps(row.output) for row in problem.tests)
    return json.loads(counts.most_common(1)[0][0])


def report_lines(findings: Mapping[str, Iterable[str]]) -> list[str]:
    """One line a problem."""
    return [f"{task_id}: {'; '.join(found)}" for task_id, found in findings.items() if found]


def rules_digest() -> str:
    """SHA-256 (hex) over what decides: a verifier that judges otherwise finds other problems."""
    digest = hashlib.sha256(Path(__file__).read_bytes())
    package = Path(prime_verifier_code.__file__).parent
    for path in sorted(package.rglob("*.py")):
        digest.update(f"\0{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def remembered(path: Path) -> dict[str, list[str]] | None:
    """The findings of an earlier run over the same tasks by the same rules and jail, or None."""
    if not path.is_file():
        return None
    found = json.loads(path.read_text(encoding="utf-8"))
    return {str(task_id): list(reasons) for task_id, reasons in found.items()}


def remember(path: Path, findings: Mapping[str, list[str]]) -> None:
    """Keep the findings; whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(findings), encoding="utf-8")
    part.replace(path)
