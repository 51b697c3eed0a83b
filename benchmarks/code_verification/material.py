"""Problems, programs and public data that the code verifier is measured on."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED = Path(os.environ.get("PRIME_SHARED", Path(__file__).parents[3] / "shared"))
CASES = SHARED / "cases" / "code_cases.jsonl"
HUMANEVAL = SHARED / "data" / "humaneval" / "HumanEval.jsonl.gz"
MBPP = SHARED / "data" / "mbpp" / "sanitized_mbpp_prime.json"

TESTS = 10
PROBLEM: dict[str, Any] = {
    "type": "stdin",
    "tests": [
        {"input": f"{n}\n" + " ".join(map(str, range(n))) + "\n", "output": f"{n * (n - 1) // 2}\n"}
        for n in range(5, 5 + TESTS)
    ],
    "time_limit_s": 2.0,
    "memory_mb": 256,
}
SOLUTION = "n = int(input())\nprint(sum(map(int, input().split())))\n"

# Attacks that end soon; those that use a limit up have one of half a second here.
ATTACKS = (
    "import os\nos._exit(0)",
    "raise SystemExit(0)",
    "print('ALL TESTS PASSED')",
    "import os\nfor fd in range(3, 200):\n    try: os.write(fd, b'ok')\n    except OSError: pass",
    "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(999)\nprint(0)",
    "import os\nfor i in range(300):\n    open(f'/tmp/{i}', 'wb').write(b'x' * 65536)",
    "import os\nfor p in (os.getppid(), 1, -1):\n    try: os.kill(p, 9)\n    except OSError: pass",
    "a = []\nwhile True: a.append(bytearray(1 << 24))",
    "import ctypes\nctypes.string_at(0)",
    "import os\nwhile True: os.write(1, b'6\\n' * 32768)",
    "import os\nos.symlink('/etc/passwd', '/tmp/x')\nprint(open('/tmp/x').read())",
    "import os, sys\nsys.settrace(lambda *a: None)\nos.mkfifo('/tmp/p')\nopen('/proc/1/mem')",
    "while True: pass",
    "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass",
)
ATTACK_PROBLEM = {**PROBLEM, "time_limit_s": 0.5}


class Absent(Exception):
    """A shared file isn't here."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A problem of a public data set.

    Attributes:
        name: the data set and the row's id.
        data: verification data.
        program: the right program.
        tests: the data set's assertions as plain Python.
        given: text of the problem at the program's start, which isn't the solution.
    """

    name: str
    data: dict[str, Any]
    program: str
    tests: str
    given: str = ""


def fenced(program: str) -> str:
    """A completion that answers with this program."""
    return f"```python\n{program}\n```\n"


def references() -> Iterator[Reference]:
    """HumanEval, then sanitized MBPP.

    Raises:
        Absent: a file is missing.
    """
    for path in (HUMANEVAL, MBPP):
        if not path.is_file():
            raise Absent(f"{path.name} isn't in the shared folder; set PRIME_SHARED to it")
    with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            data = {name: row[name] for name in ("prompt", "entry_point", "test")}
            tests = f"{row['test']}\ncheck({row['entry_point']})\n"
            program = row["prompt"] + row["canonical_solution"]
            yield Reference(row["task_id"], data, program, tests, row["prompt"])
    for row in json.loads(MBPP.read_text(encoding="utf-8")):
        data = {name: row[name] for name in ("test_imports", "test_list")}
        tests = "\n".join([*row["test_imports"], *row["test_list"]])
        yield Reference(f"MBPP/{row['task_id']}", data, row["code"], tests)


def cases() -> list[dict[str, Any]]:
    """The labelled cases.

    Raises:
        Absent: the file is missing.
    """
    if not CASES.is_file():
        raise Absent(f"{CASES.name} isn't in the shared folder; set PRIME_SHARED to it")
    return [json.loads(line) for line in CASES.read_text(encoding="utf-8").splitlines()]
