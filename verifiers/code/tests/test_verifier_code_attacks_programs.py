"""Programs that try to be paid without solving anything. Each runs in a real jail and gets 0."""

from __future__ import annotations

import pytest
from code_attacks import TOTAL, judge, marked
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


PROGRAMS = {
    "silent": "pass",
    "exit_0": "raise SystemExit(0)",
    "verdict": "print('ALL TESTS PASSED')\nprint('{\"passed\": true}')",
    "both_outputs": "print(3)\nprint(11)",
    "constant": "print(3)",
    "echo": "print(input())",
    "right_then_crash": "print(sum(map(int, input().split())))\n1 / 0",
    "right_then_code_3": "print(sum(map(int, input().split())))\nraise SystemExit(3)",
    "right_then_signal": "import os\nprint(sum(map(int, input().split())), flush=True)\nos.abort()",
    "right_then_loop": "print(sum(map(int, input().split())), flush=True)\nwhile True: pass",
    "right_then_thread": "import threading, time\n"
    "print(sum(map(int, input().split())), flush=True)\n"
    "threading.Thread(target=time.sleep, args=(99,)).start()",
    "right_then_more": "import atexit\natexit.register(print, 'more')\n"
    "print(sum(map(int, input().split())))",
    "right_then_flood": "print(sum(map(int, input().split())))\nwhile True: print('x' * 65536)",
    "nul": "print(str(sum(map(int, input().split()))) + '\\0')",
    "not_utf8": "import sys\nsys.stdout.buffer.write(b'\\xff3')",
    "full_width": "total = str(sum(map(int, input().split())))\n"
    "print(''.join(chr(0xFF10 + int(c)) for c in total))",
    "to_stderr": "import sys\nprint(sum(map(int, input().split())), file=sys.stderr)",
    "closed_stdout": "import os\nos.close(1)\nprint(sum(map(int, input().split())))",
    "daemon": "import os, time\nif os.fork() == 0:\n os.setsid()\n"
    " if os.fork() == 0: time.sleep(99)\n os._exit(0)\nprint(0)",
    "fork_bomb": "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
    "thread_bomb": "import threading, time\nwhile True:\n"
    " threading.Thread(target=time.sleep, args=(99,)).start()",
    "inodes": "i = 0\nwhile True:\n try: open(f'/tmp/{i}', 'w').close()\n except OSError: pass\n"
    " i += 1",
    "zip_bomb": "import zlib\nprint(len(zlib.decompress(zlib.compress(bytes(10**9)))))",
    "unmatched": "x = (1,\nprint(x)",
    "nested_parser": "eval('(' * 10**6)",
    "null_bytes": "print(3)\x00",
    "signals_ignored": "import signal, time\nfor s in range(1, 65):\n"
    " try: signal.signal(s, signal.SIG_IGN)\n except (OSError, ValueError): pass\n"
    "while True: time.sleep(1)",
}


@pytest.mark.parametrize("name", marked(PROGRAMS))
def test_a_program_that_does_not_solve_it_gets_nothing(verifier: CodeVerifier, name: str) -> None:
    value, status = judge(verifier, TOTAL, PROGRAMS[name])
    assert (value, status != "ok") == ("0", True)


def test_the_next_honest_program_passes_after_each_attack(verifier: CodeVerifier) -> None:
    honest = "print(sum(map(int, input().split())))"
    for name in ("daemon", "right_then_signal", "closed_stdout", "nul"):
        judge(verifier, TOTAL, PROGRAMS[name])
        assert judge(verifier, TOTAL, honest) == ("1", "ok"), name
