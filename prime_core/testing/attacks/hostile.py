"""Completions made to break a verifier or its jail: said by a node, and as if the policy said them.

A node can't choose words, so that the checks refuse them whatever a verifier would have paid. What
the policy itself learns to say reaches the verifier: `face` shows them to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from prime_core.testing.attacks.attack import Attempt, Forge
from prime_core.testing.attacks.text import end, longest, reword, saying, words
from prime_core.testing.attacks.world import World

if TYPE_CHECKING:
    from prime_core.api import Score

TOTAL = {
    "type": "stdin",
    "tests": [{"input": "1 2\n", "output": "3\n"}, {"input": "5 6\n", "output": "11\n"}],
    "time_limit_s": 1.0,
    "memory_mb": 128,
}
SQUARE = {
    "type": "function",
    "fn_name": "square",
    "tests": [{"input": [3], "output": 9}, {"input": [-4], "output": 16}],
    "time_limit_s": 1.0,
    "memory_mb": 128,
}
HONEST = "print(sum(map(int, input().split())))"  # solves TOTAL

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "ends as if all were well": (
        "import os\nos._exit(0)",
        "import atexit, os\natexit.register(lambda: os._exit(0))\nraise SystemExit(1)",
        "print('All tests passed')\nprint('OK')",
    ),
    "writes a verdict to every open file": (
        "import os\nfor fd in range(64):\n"
        '    try: os.write(fd, b\'{"passed": true, "score": 1}\\n\')\n'
        "    except OSError: pass",
    ),
    "looks for the tests": (
        "import os\nfor folder, _, names in os.walk('/'):\n    for name in names:\n"
        "        try:\n            text = open(os.path.join(folder, name)).read(4096)\n"
        "        except Exception: continue\n        if '11' in text: print(11); raise SystemExit",
        "import os\nfor pid in os.listdir('/proc'):\n"
        "    try: print(open(f'/proc/{pid}/environ').read())\n    except OSError: pass",
    ),
    "uses up time, memory, processes or output": (
        "while True: pass",
        "import time\ntime.sleep(3600)",
        "held = []\nwhile True: held.append(bytearray(2**24))",
        "import os\nwhile True: os.fork()",
        "while True: print('x' * 65536)",
        "open('/tmp/full', 'wb').write(bytes(2**31))",
    ),
    "outlives or kills its judge": (
        "import os\nfor pid in range(1, 400):\n    try: os.kill(pid, 9)\n    except OSError: pass",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    os.fork()\n    time.sleep(3600)",
        "import signal\nfor n in range(1, 32):\n    try: signal.signal(n, signal.SIG_IGN)\n"
        "    except (OSError, ValueError): pass\nwhile True: pass",
    ),
    "reaches out": (
        "import socket\nsocket.create_connection(('192.0.2.1', 80), 5).send(b'x')\nprint(3)",
    ),
}
FUNCTIONS: Mapping[str, tuple[str, ...]] = {
    "forges the comparison": (
        "class Equal(int):\n    def __eq__(self, other): return True\n    __hash__ = int.__hash__\n"
        "def square(x): return Equal(0)",
        "import json, builtins\nbuiltins.all = lambda _: True\njson.loads = lambda *_: 9\n"
        "def square(x): return 0",
        "import sys\ndef square(x):\n    frame = sys._getframe()\n    while frame:\n"
        "        for value in list(frame.f_locals.values()):\n"
        "            if isinstance(value, dict) and 'output' in value: return value['output']\n"
        "        frame = frame.f_back",
    ),
    "breaks who reads it": (
        "def square(x):\n    held = []\n    held.append(held)\n    return held",
        "def square(x):\n    held = []\n    for _ in range(100000): held = [held]\n    return held",
        "def square(x): return 10 ** 10 ** 8",
        "class Bad:\n    def __reduce__(self):\n"
        "        return (__import__('os').system, ('touch /tmp/was-here',))\n"
        "def square(x): return Bad()",
    ),
}
TEXTS = (
    "9" * 200, "1e999999999", "\\boxed{" * 40, "0" * 64 + "=", "\u202e1", "{" * 64,
    "\\boxed{10^{10^{10}}}", "\\boxed{\\frac{1}{0}}", "\\boxed{__import__('os')._exit(0)}",
    "\\boxed{" + "(" * 100 + "1" + ")" * 100 + "}",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Hostile:
    """One completion.

    Attributes:
        sort: what it tries, in words.
        verifier: the verifier that it is made for.
        row: what that verifier judges it by, as a row of cases.
    """

    sort: str
    verifier: str
    text: str
    row: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Faced:
    """What a verifier made of a hostile completion."""

    hostile: Hostile
    score: Score

    @property
    def paid(self) -> bool:
        """Whether it got anything for it."""
        return (self.score.value or 0.0) > 0

    @property
    def answer(self) -> str:
        """In the verifier's own words."""
        said = self.score.evidence.get("status") or self.score.evidence.get("rule")
        return str(said or self.score.status)


def _code(sort: str, problem: Mapping[str, Any], program: str) -> Hostile:
    text = f"```python\n{program}\n```"
    return Hostile(sort, "code", text, {"problem": problem, "completion": text})


COMPLETIONS: tuple[Hostile, ...] = (
    *(_code(sort, TOTAL, each) for sort, programs in PROGRAMS.items() for each in programs),
    *(_code(sort, SQUARE, each) for sort, programs in FUNCTIONS.items() for each in programs),
    *(
        Hostile("numbers and markup without end", "math", text, {"gold": "2", "completion": text})
        for text in TEXTS
    ),
)


def by_node(texts: Sequence[str]) -> Forge:
    """A node that says such words in one rollout, with the score that the verifier gives them."""

    def forge(world: World, attempts: Sequence[Attempt], rng: Random) -> list[Attempt]:
        changed = []
        for number, attempt in enumerate(attempts):
            index = longest(attempt.rows)
            text = texts[number % len(texts)]
            tokens = world.tokenizer.encode(text, add_special_tokens=False)
            special = {*world.facts.stop_ids, *world.tokenizer.all_special_ids}
            plain = [t for t in tokens if t not in special] or words(world, 8, rng)
            said = [*plain[: world.facts.max_tokens - 1], end(world)]
            changed.append({index: saying(attempt.rows[index], said, "stop")})
        return reword(world, attempts, changed)

    return forge


def face(hostile: Sequence[Hostile], cache_dir: Path) -> list[Faced]:
    """Show completions to the verifiers that they are made for, as if the policy had said them.

    Raises:
        PrimeError: a verifier isn't installed, or ended by one of them and can't be started again.
    """
    return asyncio.run(_face(hostile, cache_dir))


async def _face(hostile: Sequence[Hostile], cache_dir: Path) -> list[Faced]:
    from prime_core.config.sections import HostingSection, PluginChoice
    from prime_core.evaluation.verifying import case_row, verify_cases
    from prime_core.hosting.verifier_pool import VerifierPool

    found: dict[int, Faced] = {}
    for verifier in dict.fromkeys(each.verifier for each in hostile):
        mine = [i for i, each in enumerate(hostile) if each.verifier == verifier]
        choice = PluginChoice.model_validate({"use": verifier})
        rows = [case_row(dict(hostile[i].row), hostile[i].sort) for i in mine]
        opened = await VerifierPool.open(choice, HostingSection(hosts=1), cache_dir=cache_dir)
        async with opened as pool:
            cases = await pool.cases([row.fields for row in rows])
            verdicts = await verify_cases(pool, rows, cases)
        found |= {i: Faced(hostile[i], said.score) for i, said in zip(mine, verdicts, strict=True)}
    return [found[i] for i in range(len(hostile))]


def honest() -> Hostile:
    """A right solution: a verifier that holds pays it, whatever it was shown before."""
    return _code("honest", TOTAL, HONEST)
