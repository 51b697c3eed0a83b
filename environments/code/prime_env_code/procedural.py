"""Procedural problems as tasks: random access, seeded order, held-out ones by hash.

Made by the environment where no data set is named. A task is a pure function of its family, its
parameters and its kind; the seed only chooses which tasks come, and in which order.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, overload

from prime_core.api import DatasetError, Message, Task
from prime_core.api.datasets import in_split
from prime_env_code import interface
from prime_env_code.draws import HashDraws
from prime_env_code.families import FAMILIES, Family, fill
from prime_env_code.params import ProceduralParams

TIME_LIMIT_S = 4.0  # the right programs take some milliseconds
MEMORY_MB = 256
EXAMPLES = 2  # tests that the prompt shows
PATIENCE = 200  # draws without a new problem, per family, until the space counts as used up


@dataclass(frozen=True, slots=True)
class Drawn:
    """A problem: its family, its parameters, and whether a program or a function is asked for."""

    family: str
    parameters: str  # canonical JSON
    kind: str

    @property
    def key(self) -> str:
        """What the split hashes: both kinds of one problem lie on the same side."""
        return f"{self.family}:{self.parameters}"


class ProceduralTasks(Sequence[Task]):
    """The tasks of one split; a task is made when it is asked for."""

    def __init__(self, params: ProceduralParams, template: str) -> None:
        self._template = template
        self._drawn = tuple(_draw_all(params))
        if not self._drawn:
            raise DatasetError(
                f"split {params.split!r} of the procedural problems is empty",
                where="environment code",
                fix="raise test_share",
            )
        self._make = lru_cache(maxsize=256)(self._make_task)

    def __len__(self) -> int:
        return len(self._drawn)

    @overload
    def __getitem__(self, index: int) -> Task: ...
    @overload
    def __getitem__(self, index: slice) -> list[Task]: ...
    def __getitem__(self, index: int | slice) -> Task | list[Task]:
        """The task at an index, or the tasks of a slice."""
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._make(self._drawn[index])

    def _make_task(self, drawn: Drawn) -> Task:
        return make_task(drawn, self._template)


def _draw_all(params: ProceduralParams) -> Iterator[Drawn]:
    """Different problems in the order of the seed, families in turn."""
    names = [
        name
        for name, family in FAMILIES.items()
        if params.difficulty in ("mixed", family.difficulty)
    ]
    kinds = ("stdin", "function") if params.kind == "both" else (params.kind,)
    seen: set[str] = set()
    count = position = fruitless = 0
    shares = {"train": 1 - params.test_share, "test": params.test_share, "all": 1.0}
    patience = PATIENCE * len(names) / shares[params.split]
    while count < params.limit and fruitless < patience:
        name = names[position % len(names)]
        draws = HashDraws(f"{params.seed} {name} {position // len(names)}")
        kind = kinds[draws.below(len(kinds))]
        parameters = json.dumps(FAMILIES[name].draw(draws), separators=(",", ":"))
        drawn = Drawn(name, parameters, kind)
        position += 1
        fruitless += 1
        if drawn.key in seen or not in_split(drawn.key, params.split, params.test_share):
            continue
        seen.add(drawn.key)
        count += 1
        fruitless = 0
        yield drawn


@dataclass(frozen=True, slots=True)
class Solved:
    """Arguments of every test, with what the right program makes of them."""

    arguments: tuple[tuple[Any, ...], ...]
    results: tuple[Any, ...]


def run_source(source: str, arguments: Sequence[Sequence[Any]]) -> list[Any]:
    """What `solve` of a family's own source returns; never called with a model's code."""
    namespace: dict[str, Any] = {}
    exec(compile(source, "<family>", "exec"), namespace)  # noqa: S102 - our own sources only
    return [namespace["solve"](*json.loads(json.dumps(list(each)))) for each in arguments]


def solved(family: Family, parameters: Mapping[str, Any]) -> Solved:
    """The tests of a problem."""
    draws = HashDraws(f"tests {family.name} {json.dumps(parameters, separators=(',', ':'))}")
    arguments = [tuple(each) for each in family.inputs(draws, parameters)]
    different = {json.dumps(each): each for each in arguments}
    chosen = tuple(different.values())
    return Solved(chosen, tuple(run_source(fill(family.right, parameters), chosen)))


def make_task(drawn: Drawn, template: str) -> Task:
    """The task that asks for a drawn problem."""
    family, parameters = FAMILIES[drawn.family], json.loads(drawn.parameters)
    tests = solved(family, parameters)
    right = fill(family.right, parameters)
    verification: dict[str, Any] = {
        "type": drawn.kind,
        "tests": _rows(family, drawn.kind, tests),
        "time_limit_s": TIME_LIMIT_S,
        "memory_mb": MEMORY_MB,
    }
    if drawn.kind == "function":
        verification["fn_name"] = "solve"
    digest = hashlib.sha256(drawn.key.encode()).hexdigest()[:12]
    return Task(
        id=f"{drawn.family}-{digest}-{drawn.kind}",
        prompt=(Message("user", _prompt(family, drawn, tests, template)),),
        gold=interface.program(family, right) if drawn.kind == "stdin" else right + "\n",
        verification=verification,
        metadata={
            "family": drawn.family,
            "parameters": parameters,
            "difficulty": family.difficulty,
            "kind": drawn.kind,
        },
        task_type="verifiable_code",
        source="prime-env-code",
    )


def _rows(family: Family, kind: str, tests: Solved) -> list[dict[str, Any]]:
    rows = []
    for arguments, result in zip(tests.arguments, tests.results, strict=True):
        if kind == "function":
            rows.append({"input": list(arguments), "output": result})
        else:
            given = interface.input_text(family, arguments)
            rows.append({"input": given, "output": interface.output_text(family, result)})
    return rows


def _prompt(family: Family, drawn: Drawn, tests: Solved, template: str) -> str:
    ask = interface.ask_for_program if drawn.kind == "stdin" else interface.ask_for_function
    examples = [
        interface.show_example(family, drawn.kind, arguments, result)
        for arguments, result in zip(tests.arguments[:EXAMPLES], tests.results, strict=False)
    ]
    statement = fill(family.statement, json.loads(drawn.parameters))
    problem = "\n\n".join([statement, ask(family), *examples])
    return template.replace("{problem}", problem)


def wrong_sources(task: Task) -> list[str]:
    """The family's wrong programs that differ from the right one on this task's tests."""
    family, parameters = FAMILIES[task.metadata["family"]], task.metadata["parameters"]
    tests = solved(family, parameters)
    sources = []
    for template in family.wrong:
        source = fill(template, parameters)
        if run_source(source, tests.arguments) != list(tests.results):
            stdin = task.metadata["kind"] == "stdin"
            sources.append(interface.program(family, source) if stdin else source + "\n")
    return sources
