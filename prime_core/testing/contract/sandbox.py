"""What every sandbox keeps: exact answers, statuses, limits, and no word from hostile programs.

Authors inherit `SandboxContract` and override `make_sandbox` and `level`. Each hostile program is
followed by an honest input in the same jail, which has to pass.
"""

from __future__ import annotations

import math
import os
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from prime_core.api import (
    Execution,
    Isolation,
    IsolationLevel,
    JailInput,
    Limits,
    Program,
    Sandbox,
)
from prime_core.hub.kinds import missing_members
from prime_core.testing.contract.hostile import HONEST_AFTER, HOSTILE
from prime_core.testing.contract.left_behind import children_of, leftovers
from prime_core.testing.contract.plain import override

QUICK = Limits(cpu_seconds=0.5, wall_seconds=1.2, memory_mb=128, processes=16, output_bytes=1 << 20)


class SandboxContract:
    """Inherit, and override the first two fixtures."""

    @pytest.fixture(scope="class")
    @classmethod
    def make_sandbox(cls) -> Callable[[], Sandbox]:
        """A function that makes the sandbox anew, as a second host would."""
        made: Callable[[], Sandbox] = override("make_sandbox", "makes the sandbox")
        return made

    @pytest.fixture(scope="class")
    @classmethod
    def level(cls) -> IsolationLevel:
        """The level that this host is known to give."""
        found: IsolationLevel = override("level", "the level that it reaches on this host")
        return found

    @pytest.fixture(scope="class")
    @classmethod
    def sandbox(cls, make_sandbox: Callable[[], Sandbox]) -> Iterator[Sandbox]:
        """The sandbox under test, one for all tests of the class."""
        made = make_sandbox()
        yield made
        made.close()

    @staticmethod
    def execute(
        sandbox: Sandbox, source: str, stdin: bytes = b"", limits: Limits = QUICK
    ) -> Execution:
        """One input of one script."""
        with sandbox.open(Program(textwrap.dedent(source)), limits) as jail:
            return jail.run(JailInput(stdin))

    @staticmethod
    def call(sandbox: Sandbox, source: str, *args: Any, entry: str = "f") -> Execution:
        """One call of one program."""
        program = Program(textwrap.dedent(source), "call", entry)
        with sandbox.open(program, QUICK) as jail:
            return jail.run(JailInput(args=args))

    # --- what is left, while the class's own sandbox warms no jails in the background ------------

    def test_its_processes_are_declared_and_all_end(
        self, make_sandbox: Callable[[], Sandbox]
    ) -> None:
        before = children_of(os.getpid())
        sandbox = make_sandbox()
        jail = sandbox.open(Program("import os\nif os.fork() == 0: os.fork()"), QUICK)
        jail.run(JailInput())
        assert children_of(os.getpid()) - before, "a jail is a process"
        deadline = time.monotonic() + 5  # a warmed jail is declared right after it was forked
        while not (started := children_of(os.getpid()) - before) <= sandbox.processes():
            assert time.monotonic() < deadline, f"undeclared: {started - sandbox.processes()}"
            time.sleep(0.01)
        jail.close()
        sandbox.close()
        assert children_of(os.getpid()) - before == set()
        assert sandbox.processes() == frozenset()

    def test_it_leaves_no_group_or_folder(self, make_sandbox: Callable[[], Sandbox]) -> None:
        before = leftovers()
        sandbox = make_sandbox()
        with sandbox.open(Program("open('x', 'w').write('x')"), QUICK) as jail:
            assert jail.run(JailInput()).status == "ok"
        sandbox.close()
        for _ in range(4):  # closed while warmed jails are still starting
            sandbox = make_sandbox()
            sandbox.probe()
            sandbox.close()
        deadline = time.monotonic() + 5
        while leftovers() - before and time.monotonic() < deadline:
            time.sleep(0.05)
        assert leftovers() - before == set()

    # --- what it is -------------------------------------------------------------------------------

    def test_has_every_member(self, sandbox: Sandbox) -> None:
        assert missing_members(sandbox, [Sandbox]) == []

    def test_a_real_launch_tells_the_level(self, sandbox: Sandbox, level: IsolationLevel) -> None:
        found = sandbox.probe()
        assert isinstance(found, Isolation)
        assert found.level == level, found.missing
        assert len(found.policy_digest) == 64
        assert sandbox.probe() == found

    def test_two_sandboxes_have_one_policy(
        self, sandbox: Sandbox, make_sandbox: Callable[[], Sandbox]
    ) -> None:
        other = make_sandbox()
        try:
            assert other.probe().policy_digest == sandbox.probe().policy_digest
        finally:
            other.close()

    # --- honest programs --------------------------------------------------------------------------

    def test_a_script_gives_its_bytes(self, sandbox: Sandbox) -> None:
        source = "import sys\nsys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])\n"
        found = self.execute(sandbox, source, b"\x00\xffab\r\n")
        assert (found.status, found.stdout, found.exit_code) == ("ok", b"\n\rba\xff\x00", 0)
        assert 0 < found.cpu_seconds < 1
        assert found.peak_memory > 1 << 20

    @pytest.mark.parametrize(
        "source",
        [
            "print(sum(map(int, open(0).read().split())))",
            "import os\nprint(sum(map(int, os.read(0, os.fstat(0).st_size).split())))",
            "import sys\nprint(sum(int(x) for line in sys.stdin for x in line.split()))",
            "print(int(input()) + int(input()))\nexit()",
            "out = open(1, 'w')\nout.write(str(int(input()) + int(input())))",
            "import atexit\natexit.register(lambda: print(int(input()) + int(input())))",
            "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'pass'], "
            "stdout=subprocess.DEVNULL, check=True)\nprint(int(input()) + int(input()))",
            "import asyncio\nasync def f(): print(int(input()) + int(input()))\nasyncio.run(f())",
            "import threading\nthreading.stack_size(64 << 20)\n"
            "threading.Thread(target=lambda: print(int(input()) + int(input()))).start()",
        ],
    )
    def test_programs_read_and_write_as_they_like(self, sandbox: Sandbox, source: str) -> None:
        found = self.execute(sandbox, source, b"20\n22\n")
        assert (found.status, found.stdout.strip()) == ("ok", b"42"), found

    def test_a_call_gives_exact_types(self, sandbox: Sandbox) -> None:
        source = """
            from collections import Counter, OrderedDict
            def f(x):
                print("this goes to stderr")
                return [x, (1, 2.5), {"a": (True, None)}, Counter("aab"), 10**40, "\\ud800", -0.0]
        """
        found = self.call(sandbox, source, {"k": [1, "two", 3.0]})
        assert found.status == "ok"
        expected = [{"k": [1, "two", 3.0]}, (1, 2.5), {"a": (True, None)}, {"a": 2, "b": 1}]
        assert found.result == [*expected, 10**40, "\ud800", 0.0]
        assert type(found.result[1]) is tuple
        assert type(found.result[3]) is dict
        assert math.copysign(1, found.result[6]) < 0
        assert (found.stdout, found.stderr) == (b"", b"this goes to stderr\n")

    def test_a_method_of_solution_comes_first(self, sandbox: Sandbox) -> None:
        source = "def f(x): return 1\nclass Solution:\n    def f(self, x): return x * 2\n"
        assert self.call(sandbox, source, 21).result == 42

    def test_arguments_are_fresh_in_every_call(self, sandbox: Sandbox) -> None:
        source = "seen = []\ndef f(x):\n    x.append(len(seen))\n    seen.append(1)\n    return x\n"
        with sandbox.open(Program(source, "call", "f"), QUICK) as jail:
            assert [jail.run(JailInput(args=([5],))).result for _ in range(3)] == [[5, 0]] * 3

    def test_a_prelude_moves_no_line(self, sandbox: Sandbox) -> None:
        program = Program("x: List[int] = [1]\nraise KeyError(x)", prelude="from typing import *\n")
        with sandbox.open(program, QUICK) as jail:
            found = jail.run(JailInput())
        assert b'"solution.py", line 2' in found.stderr

    def test_sets_have_one_order(self, sandbox: Sandbox) -> None:
        source = "print(*{str(i) for i in range(50)})\nimport random\nprint(random.random())"
        assert len({self.execute(sandbox, source).stdout for _ in range(3)}) == 1

    # --- statuses ---------------------------------------------------------------------------------

    @pytest.mark.parametrize(
        ("source", "status", "code"),
        [
            ("raise SystemExit(3)", "runtime_error", 3),
            ("import os\nos._exit(255)", "runtime_error", 255),
            ("import os\nos._exit(137)", "runtime_error", 137),
            ("print(1/0)", "runtime_error", 1),
            ("def f(:\n", "compile_error", None),
            ("x = " + "(" * 5000 + ")" * 5000, "compile_error", None),
            ("x = '\\0'\n\0", "compile_error", None),
            ("import os\nos.kill(os.getpid(), 11)", "runtime_error", None),
            ("while True: pass", "time_limit", None),
            ("import time\ntime.sleep(60)", "time_limit", None),
            ("x = bytearray(1 << 31)", "memory_limit", None),
            ("print('x' * (2 << 20))", "output_limit", None),
            ("import sys\nsys.stderr.write('x' * (2 << 20))", "output_limit", None),
        ],
    )
    def test_a_script_that_fails_says_how(
        self, sandbox: Sandbox, source: str, status: str, code: int | None
    ) -> None:
        found = self.execute(sandbox, source)
        assert found.status == status, found
        assert code is None or found.exit_code == code

    def test_a_limit_of_time_says_which(self, sandbox: Sandbox) -> None:
        assert self.execute(sandbox, "while True: pass").detail == "cpu"
        assert self.execute(sandbox, "import time\ntime.sleep(60)").detail == "wall"

    @pytest.mark.parametrize(
        ("source", "status"),
        [
            ("g = 1", "no_entry_point"),
            ("f = 1", "no_entry_point"),
            ("def f(): return {1, 2}", "bad_result_type"),
            ("def f(): return (x for x in [])", "bad_result_type"),
            ("class I(int): pass\ndef f(): return I(3)", "bad_result_type"),
            (
                "class L(list):\n  def __eq__(s, o): return True\ndef f(): return L()",
                "bad_result_type",
            ),
            ("def f():\n  x = []\n  x.append(x)\n  return x", "bad_result_type"),
            ("def f():\n  x = []\n  for _ in range(10**5): x = [x]\n  return x", "bad_result_type"),
            ("def f(): raise SystemExit(0)", "runtime_error"),
            ("import os\ndef f(): os._exit(0)", "runtime_error"),
            ("import os\ndef f(): os.write(3, b'1\\n'); os._exit(0)", "ok"),  # its word, no more
            ("import os\ndef f():\n  os.write(3, b'1\\n')\n  return 1", "bad_result_type"),
            ("import os\ndef f(): os.write(3, b'[9]\\n'); os._exit(0)", "bad_result_type"),
            (
                "import os\ndef f(): os.write(3, b'[' * 10**5 + b'\\n'); os._exit(0)",
                "bad_result_type",
            ),
            ("def f(): return 'x' * (2 << 20)", "output_limit"),
            ("def f(): 1/0", "runtime_error"),
        ],
    )
    def test_a_call_that_fails_says_how(self, sandbox: Sandbox, source: str, status: str) -> None:
        found = self.call(sandbox, source)
        assert found.status == status, found

    # --- hostile programs -------------------------------------------------------------------------

    @pytest.mark.parametrize("name", sorted(HOSTILE))
    def test_nothing_hostile_reaches_the_next_input(self, sandbox: Sandbox, name: str) -> None:
        source = HONEST_AFTER.format(
            hostile=textwrap.indent(textwrap.dedent(HOSTILE[name]), "    ")
        )
        with sandbox.open(Program(source), QUICK) as jail:
            hostile = jail.run(JailInput(b"hostile\n"))
            assert b"reached" not in hostile.stdout, f"{name}: {hostile}"
            for _ in range(2):
                honest = jail.run(JailInput(b"honest\n"))
                assert (honest.status, honest.stdout) == ("ok", b"honest []\n"), f"{name}: {honest}"

    def test_honest_programs_see_no_other_priority(self, sandbox: Sandbox) -> None:
        source = "import os\nprint(os.getpriority(os.PRIO_PROCESS, 0))"
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        assert int(self.execute(sandbox, source).stdout) == nice

    # --- who opened it ----------------------------------------------------------------------------

    def test_a_jail_outlives_the_thread_that_opened_it(self, sandbox: Sandbox) -> None:
        with ThreadPoolExecutor(1) as thread:
            jail = thread.submit(sandbox.open, Program("print(input())"), QUICK).result()
        with jail:  # a launcher that dies with its parent dies with the thread that started it
            assert jail.run(JailInput(b"lives")).stdout == b"lives\n"
