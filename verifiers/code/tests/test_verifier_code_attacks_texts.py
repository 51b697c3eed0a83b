"""Outputs that look like several answers at once, and programs that leave in odd ways."""

from __future__ import annotations

from typing import Any

import pytest
from code_attacks import TOTAL, YES_NO, judge
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox

THIRDS: dict[str, Any] = {
    "type": "stdin",
    "tests": [{"input": f"{n}\n", "output": f"{n / 3:.9f}\n"} for n in (1, 2)],
    "time_limit_s": 1.0,
}
TEXTS = {
    "yesno": "print('YES/NO')",
    "yes_no_lines": "print('YES\\nNO')",
    "cr_overwrite": "print('YES\\rNO')",
    "bs_overwrite": "print('YES\\b\\b\\bNO')",
    "ansi": "print('\\x1b[2KYES\\x1b[1GNO')",
    "regex_out": "print('.*')",
    "json_list": 'print(\'["YES","NO"]\')',
    "lower": "print('yes' if input()=='1' else 'no')",
    "zero_width": "print('YES\\u200b' if input()=='1' else 'NO\\u200b')",
    "nbsp": "print('YES\\u00a0' if input()=='1' else 'NO\\u00a0')",
    "cyrillic": "print('УES' if input()=='1' else 'NО')",
    "nul_pad": "print('YES\\0' if input()=='1' else 'NO\\0')",
    "bom_out": """
import sys
sys.stdout.buffer.write(b'\\xef\\xbb\\xbf'+(b'YES' if input()=='1' else b'NO'))
""",
    "utf16": """
import sys
sys.stdout.buffer.write(('YES' if input()=='1' else 'NO').encode('utf-16'))
""",
}
NUMBERS = {
    "range_notation": "print('0.3..0.7')",
    "inf_token": "print('inf')",
    "nan_token": "print('nan')",
    "huge_exp": "print('1e999999')",
    "both_floats": "print('0.333333333 0.666666667')",
    "hex_float": "print((1/3).hex())",
    "fraction_token": "print('1/3')",
}
EXITS = {
    "systemexit_bool_code": "raise SystemExit(False)",
    "systemexit_lying_int": """
class I(int):
 __and__=lambda s,o:0
print('x')
raise SystemExit(I(1))
""",
    "right_exit_lying": """
class I(int):
 __and__=lambda s,o:0
print(sum(map(int,input().split()))+1)
raise SystemExit(I(5))
""",
    "exec_prints": """
import os,sys
os.execv(sys.executable,[sys.executable,'-c','print(3)'])
""",
    "pid_index": """
import os
print([3,11][os.getpid()%2])
""",
    "other_inputs_seek": """
import os
os.lseek(0,0,0)
d=os.read(0,10**6)
print(d)
""",
    "const_fold": """
x='a'*4000*4000*4000
print(len(x))
""",
    "sparse": """
import os
os.ftruncate(1,8<<20)

""",
    "sparse_tmp": """
f=open('/tmp/x','wb')
f.truncate(10**12)
print(0)
""",
    "pipe_fill": """
import os
ps=[]
while True:
 try:
  r,w=os.pipe();ps.append((r,w));os.set_blocking(w,False);os.write(w,b'x'*65536)
 except OSError: break
print(0)
""",
    "dup_fds": """
import os
while True:
 try: os.dup(1)
 except OSError: break
print(0)
""",
    "zombie_chain": """
import os
while True:
 if os.fork(): os._exit(0)
""",
}


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


@pytest.mark.parametrize(
    ("problem", "name"),
    [
        *((YES_NO, name) for name in TEXTS),
        *((THIRDS, name) for name in NUMBERS),
        *((TOTAL, name) for name in EXITS),
    ],
)
def test_an_output_is_one_answer(
    verifier: CodeVerifier, problem: dict[str, Any], name: str
) -> None:
    value, status = judge(verifier, problem, {**TEXTS, **NUMBERS, **EXITS}[name])
    assert (value, status != "ok") == ("0", True)
