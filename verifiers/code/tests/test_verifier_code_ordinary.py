"""Right programs as people write them, which a jail mustn't fail for what it lacks."""

from __future__ import annotations

from typing import Any

import pytest
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox

TOTAL: dict[str, Any] = {
    "type": "stdin",
    "tests": [{"input": "3\n1 2 3\n", "output": "6\n"}, {"input": "2\n-4 9\n", "output": "5\n"}],
    "time_limit_s": 2.0,
    "memory_mb": 256,
}
READ = "DATA = open(0).read()\n"
PRINT = "print(sum(map(int, DATA.split()[1:])))\n"
LINES = "input()\nprint(sum(map(int, input().split())))\n"

READING = {
    "dev_stdin": "DATA = open('/dev/stdin').read()\n" + PRINT,
    "dev_stdin_bytes": "DATA = open('/dev/stdin', 'rb').read()\n" + PRINT,
    "dev_stdin_by_pathlib": "import pathlib\nDATA = pathlib.Path('/dev/stdin').read_text()\n"
    + PRINT,
    "dev_fd": "DATA = open('/dev/fd/0').read()\n" + PRINT,
    "proc_self_fd": "DATA = open('/proc/self/fd/0').read()\n" + PRINT,
    "open_0_bytes": "DATA = open(0, 'rb').read()\n" + PRINT,
    "os_read": "import os\nDATA = os.read(0, 1 << 20)\n" + PRINT,
    "os_fdopen": "import os\nDATA = os.fdopen(0, 'r').read()\n" + PRINT,
    "buffer": "import sys\nDATA = sys.stdin.buffer.read()\n" + PRINT,
    "buffer_readline": "import sys\ninput = sys.stdin.buffer.readline\n" + LINES,
    "input_and_readline": "import sys\ninput()\nprint(sum(map(int, sys.stdin.readline().split())))",
    "lines": "import sys\nprint(sum(map(int, [*sys.stdin][1].split())))",
    "fileinput": "import fileinput\nprint(sum(map(int, [*fileinput.input()][1].split())))",
    "until_eof": "DATA = ''\nwhile True:\n try: DATA += input() + '\\n'\n except EOFError: break\n"
    + PRINT,
    "mmap": "import mmap\nDATA = mmap.mmap(0, 0, access=mmap.ACCESS_READ).read()\n" + PRINT,
    "select": "import select, sys\nassert select.select([sys.stdin], [], [], 0)[0]\n" + LINES,
    "reconfigured": "import sys\nsys.stdin.reconfigure(encoding='utf-8')\n"
    "sys.stdout.reconfigure(line_buffering=True)\n" + LINES,
    "wrapped": "import io, sys\nsys.stdin = io.TextIOWrapper(sys.stdin.buffer)\n"
    "sys.stdout = io.TextIOWrapper(sys.stdout.buffer)\nDATA = sys.stdin.read()\n" + PRINT,
    "closed_after": READ + "import sys\nsys.stdin.close()\n" + PRINT,
}
WRITING = {
    "dev_stdout": READ + "open('/dev/stdout', 'w').write(str(sum(map(int, DATA.split()[1:]))))",
    "flush": READ + PRINT.replace(")))", ")), flush=True)"),
    "no_newline": READ + PRINT.replace(")))", ")), end='')"),
    "crlf": READ + PRINT.replace(")))", ")), end='\\r\\n')"),
    "blanks_at_the_end": READ + PRINT.replace(")))", ")), end='  \\n\\n')"),
    "detached": "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.detach())\n" + LINES,
    "codecs": "import codecs, sys\nsys.stdout = codecs.getwriter('utf8')(sys.stdout.buffer)\n"
    + LINES,
    "stdout_closed_after": READ + PRINT + "import sys\nsys.stdout.close()",
    "buffer_at_exit": "import atexit, io, sys\nsys.stdout = io.BytesIO()\n"
    "atexit.register(lambda: sys.__stdout__.buffer.write(sys.stdout.getvalue()))\n"
    "input()\nsys.stdout.write(str(sum(map(int, input().split()))).encode())",
    "text_at_exit": "import atexit, io, sys\nsys.stdout = io.StringIO()\n"
    "atexit.register(lambda: sys.__stdout__.write(sys.stdout.getvalue()))\n" + LINES,
    "redirected_meanwhile": "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()):"
    "\n print('x')\n" + LINES,
    "own_fast_io": """
import os, sys
from io import BytesIO, IOBase
class FastIO(IOBase):
    newlines = 0
    def __init__(self, file):
        self._fd = file.fileno()
        self.buffer = BytesIO()
        self.writable = "x" in file.mode or "r" not in file.mode
        self.write = self.buffer.write if self.writable else None
    def readline(self):
        while self.newlines == 0:
            b = os.read(self._fd, max(os.fstat(self._fd).st_size, 8192))
            self.newlines = b.count(b"\\n") + (not b)
            ptr = self.buffer.tell()
            self.buffer.seek(0, 2), self.buffer.write(b), self.buffer.seek(ptr)
        self.newlines -= 1
        return self.buffer.readline()
    def flush(self):
        if self.writable:
            os.write(self._fd, self.buffer.getvalue())
            self.buffer.truncate(0), self.buffer.seek(0)
fast_in, fast_out = FastIO(sys.stdin), FastIO(sys.stdout)
fast_in.readline()
fast_out.write(b"%d" % sum(map(int, fast_in.readline().split())))
fast_out.flush()
""",
}
ENDING = {
    "exit": READ + PRINT + "exit()",
    "quit": READ + PRINT + "quit(0)",
    "sys_exit": READ + PRINT + "import sys\nsys.exit()",
    "flush_and_os_exit": READ + PRINT + "import os, sys\nsys.stdout.flush()\nos._exit(0)",
    "main_guard": f"def main():\n {LINES.replace(chr(10), chr(10) + ' ')}\n"
    "if __name__ == '__main__':\n main()",
    "daemon_thread": "import threading, time\n"
    "threading.Thread(target=time.sleep, args=(99,), daemon=True).start()\n" + LINES,
    "cancelled_timer": "import threading\nt = threading.Timer(99, print)\nt.start()\nt.cancel()\n"
    + LINES,
    "unittest": READ + PRINT + "import unittest\nunittest.main(argv=['x'], exit=False)",
}
RECURSION = "def f(i): return 0 if i == 0 else 1 + f(i - 1)\n"
LIMITS = {
    "recursion": "import sys\nsys.setrecursionlimit(10**6)\n" + RECURSION + "f(100_000)\n" + LINES,
    "cached_recursion": "import functools, sys\nsys.setrecursionlimit(10**6)\n@functools.cache\n"
    + RECURSION
    + "f(50_000)\n"
    + LINES,
    "half_a_gigabyte_of_stack": "import sys, threading\nsys.setrecursionlimit(10**7)\n"
    "assert threading.stack_size(512 << 20) == 0\nassert threading.stack_size(1 << 29) == 1 << 29\n"
    + RECURSION
    + f"def main():\n f(100_000)\n {LINES.replace(chr(10), chr(10) + ' ')}\n"
    "t = threading.Thread(target=main)\nt.start()\nt.join()",
    "stack_without_limit": "import resource as r\nmost = r.RLIM_INFINITY\n"
    "if r.getrlimit(r.RLIMIT_STACK)[1] == most: r.setrlimit(r.RLIMIT_STACK, (most, most))\n"
    + LINES,
    "digits": "import sys\nsys.set_int_max_str_digits(0)\nstr(10**10_000)\n" + LINES,
    "forty_megabytes": "x = [0] * (5 * 10**6)\n" + LINES,
    "sixteen_threads": "import threading, time\n"
    "ts = [threading.Thread(target=time.sleep, args=(0.01,)) for _ in range(16)]\n"
    "for t in ts: t.start()\n" + LINES,
}
LIBRARY = {
    "locale": "import locale\nlocale.setlocale(locale.LC_ALL, '')\n" + LINES,
    "asyncio": "import asyncio\nasync def main():\n await asyncio.to_thread(input)\n"
    " print(sum(map(int, input().split())))\nasyncio.run(main())",
    "thread_pool": READ + "from concurrent.futures import ThreadPoolExecutor\n"
    "with ThreadPoolExecutor() as e: print(sum(e.map(int, DATA.split()[1:])))",
    "subprocess": "import subprocess, sys\n"
    "assert subprocess.check_output([sys.executable, '-c', 'print(1)']) == b'1\\n'\n" + LINES,
    "temporary_files": "import tempfile\nwith tempfile.NamedTemporaryFile() as f: f.write(b'x')\n"
    "open('x.txt', 'w').write('x')\n" + LINES,
    "numpy_where_there_is_one": "try:\n import numpy\nexcept ImportError: pass\n" + LINES,
    "sqlite": "import sqlite3\nsqlite3.connect(':memory:').execute('create table a(b)')\n" + LINES,
    "compression": "import bz2, gzip, lzma, zlib\nassert lzma.decompress(lzma.compress(b'x'))\n"
    + LINES,
    "hashes": "import hashlib\nhashlib.md5(b'').hexdigest(), hashlib.sha3_256(b'')\n" + LINES,
    "dates": "import datetime, time\ndatetime.datetime.now().astimezone()\n"
    "assert time.strftime('%Y年') >= '2020年'\n" + LINES,
    "network_modules": "import http.client, urllib.request\n" + LINES,
    "logging": "import logging\nlogging.basicConfig(level=0)\nlogging.debug('x')\n" + LINES,
    "argparse": "import argparse\nargparse.ArgumentParser().parse_args()\n" + LINES,
    "traceback": "import traceback\ntry: 1 / 0\nexcept Exception: traceback.print_exc()\n" + LINES,
    "pickled_class": "import pickle\nclass A: pass\npickle.loads(pickle.dumps(A()))\n" + LINES,
    "names_of_site": "help, exit, quit\n" + LINES,
    "own_module": "import __main__, os\n__main__.x = os.path.abspath(__file__)\nx\n" + LINES,
    "typing_star": "from typing import *\ndef f(x: List[int]) -> Optional[int]: return sum(x)\n"
    "input()\nprint(f(list(map(int, input().split()))))",
    "dataclass": "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    "@dataclass\nclass A:\n x: list[int]\ninput()\nprint(sum(A(map(int, input().split())).x))",
    "latin_cookie": "#!/usr/bin/env python3\n# -*- coding: latin-1 -*-\n" + LINES,
    "signals": "import signal\nsignal.signal(signal.SIGALRM, print)\nsignal.alarm(9)\n" + LINES,
}
GUARD = "if __name__ == '__main__':\n "
PARALLEL = {
    "pool": f"{READ}from multiprocessing import Pool, cpu_count\nassert cpu_count() == 2\n{GUARD}"
    "with Pool() as p: print(sum(p.map(int, DATA.split()[1:])))",
    "lock_and_value": "from multiprocessing import Lock, Process, Queue, Value\n"
    "def add(v, q):\n with v.get_lock(): v.value += 1\n q.put(v.value)\n"
    f"{GUARD}v, q = Value('i', 0), Queue()\n p = Process(target=add, args=(v, q))\n p.start()\n"
    f" p.join()\n assert q.get() == v.value == 1\n {LINES.replace(chr(10), chr(10) + ' ')}",
    "process_pool": f"{READ}from concurrent.futures import ProcessPoolExecutor\n{GUARD}"
    "with ProcessPoolExecutor(2) as e: print(sum(e.map(int, DATA.split()[1:])))",
    "shared_memory": "from multiprocessing.shared_memory import SharedMemory\n"
    "s = SharedMemory(create=True, size=9)\ns.close()\ns.unlink()\n" + LINES,
}
SORTS = (READING, WRITING, ENDING, LIMITS, LIBRARY, PARALLEL)


@pytest.fixture(scope="module")
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


@pytest.mark.parametrize("name", [name for sort in SORTS for name in sort])
def test_a_program_passes_as_in_a_plain_interpreter(verifier: CodeVerifier, name: str) -> None:
    code = next(sort[name] for sort in SORTS if name in sort)
    score = verifier.judge_data(TOTAL, f"```python\n{code}\n```")
    assert score.value == 1.0, score.evidence


@pytest.mark.parametrize(
    ("source", "detail"),
    [
        ("import numpy as np", "no such module in the jail: numpy"),
        ("from pandas import x\nimport json", "no such module in the jail: pandas"),
        ("__import__(input())", "no such module in the jail"),  # its words may be a test's
        ("import json\njson.x", "exit code 1"),
    ],
)
def test_a_program_that_lacks_a_module_is_told_which(
    verifier: CodeVerifier, source: str, detail: str
) -> None:
    score = verifier.judge_data(TOTAL, f"```python\n{source}\n```")
    assert (score.value, score.evidence["status"]) == (0.0, "runtime_error")
    assert score.evidence["results"][-1]["detail"] == detail


FUNCTIONS = {
    "solution": "class Solution:\n def total(self, xs: List[int]) -> int: return sum(xs)",
    "solution_with_state": "class Solution(object):\n def __init__(self): self.t = 0\n"
    " def total(self, xs):\n  for x in xs: self.t += x\n  return self.t",
    "static": "class Solution:\n @staticmethod\n def total(xs): return sum(xs)",
    "inherited": "class Base:\n def total(self, xs): return sum(xs)\nclass Solution(Base): pass",
    "reduce": "from functools import partial, reduce\nimport operator\n"
    "total = partial(reduce, operator.add)",
    "callable": "class T:\n def __call__(self, xs): return sum(xs)\ntotal = T()",
    "consumes": "def total(xs):\n t = 0\n while xs: t += xs.pop()\n return t",
    "counts_in_a_global": "t = 0\ndef total(xs):\n global t\n for x in xs: t += x\n return t",
    "whole_float": "def total(xs): return float(sum(xs))",
    "main_guard": "def total(xs): return sum(xs)\n"
    "if __name__ == '__main__':\n assert total([]) == 1",
    "tries_itself": "def total(xs): return sum(xs)\nassert total([1]) == 1\nprint('ok')",
    "deep": "import sys\nsys.setrecursionlimit(10**6)\ndef total(xs):\n"
    f" {RECURSION} f(50_000)\n return sum(xs)",
    "thread": "import threading\ndef total(xs):\n r = []\n"
    " t = threading.Thread(target=lambda: r.append(sum(xs)))\n t.start()\n t.join()\n return r[0]",
    "pool": "from concurrent.futures import ThreadPoolExecutor\ndef total(xs):\n"
    " with ThreadPoolExecutor() as e: return sum(e.map(int, xs))",
    "writes_to_a_stream": "def total(xs):\n open('/dev/stderr', 'w').write('x')\n return sum(xs)",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_passes_as_in_a_plain_interpreter(verifier: CodeVerifier, name: str) -> None:
    problem = {
        "type": "function",
        "fn_name": "total",
        "time_limit_s": 2.0,
        "tests": [{"input": [[1, 2, 3]], "output": 6}, {"input": [[-4, 9]], "output": 5}],
    }
    score = verifier.judge_data(problem, f"```python\n{FUNCTIONS[name]}\n```")
    assert score.value == 1.0, score.evidence
