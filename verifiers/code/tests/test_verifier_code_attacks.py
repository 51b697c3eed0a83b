"""Functions that try to be paid without solving anything. Each runs in a real jail and gets 0."""

from __future__ import annotations

import pytest
from code_attacks import BLOCK, LOOP, SQUARE, judge, marked
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


VALUES = {
    "always_equal": "class A:\n __eq__ = lambda s, o: True\n __bool__ = lambda s: True\n"
    " __hash__ = lambda s: 0\ndef square(x): return A()",
    "equal_metaclass": "class M(type):\n __eq__ = lambda s, o: True\n __hash__ = type.__hash__\n"
    "class A(metaclass=M): pass\ndef square(x): return A",
    "int_subclass": "class I(int):\n __eq__ = lambda s, o: True\n __hash__ = int.__hash__\n"
    "def square(x): return I(0)",
    "int_lying_index": "class I(int):\n __index__ = lambda s: 9\n __repr__ = lambda s: '9'\n"
    " __int__ = lambda s: 9\n __str__ = lambda s: '9'\ndef square(x): return I(1)",
    "float_subclass": "class F(float):\n __sub__ = __rsub__ = lambda s, o: 0.0\n"
    " __eq__ = lambda s, o: True\n __hash__ = None\ndef square(x): return F(1)",
    "str_subclass": "class S(str):\n __eq__ = lambda s, o: True\n __hash__ = None\n"
    "def square(x): return S('x')",
    "list_subclass": "class L(list):\n __eq__ = lambda s, o: True\n __len__ = lambda s: 1\n"
    "def square(x): return L()",
    "dict_subclass": "class D(dict):\n __eq__ = lambda s, o: True\ndef square(x): return D()",
    "bool_enum": "import enum\nclass E(enum.IntEnum):\n A = 9\ndef square(x): return E.A",
    "nan": "def square(x): return float('nan')",
    "inf": "def square(x): return float('inf')",
    "text": "def square(x): return str(x * x)",
    "generator": "def square(x): yield x * x",
    "iterator": "def square(x): return iter([x * x])",
    "coroutine": "async def square(x): return x * x",
    "in_a_list": "def square(x): return [x * x]",
    "in_a_set": "def square(x): return {x * x}",
    "itself": "def square(x): return square",
    "self_referential": "def square(x):\n a = []\n a.append(a)\n return a",
    "deep": "def square(x):\n r = x * x\n for _ in range(10**5): r = [r]\n return r",
    "wide": "def square(x): return [[]] * 10**7",
    "huge_text": "def square(x): return 'x' * (64 << 20)",
    "surrogates": "def square(x): return '\\ud800'",
    "reduce": "class R:\n def __reduce__(s): return (print, ('x',))\ndef square(x): return R()",
    "not_implemented": "def square(x): return NotImplemented",
    "ellipsis": "def square(x): return ...",
    "decimal": "import decimal\ndef square(x): return decimal.Decimal(x * x)",
    "fraction": "import fractions\ndef square(x): return fractions.Fraction(x * x)",
}
FLOW = {
    "exit": "import sys\ndef square(x): sys.exit(0)",
    "exit_9": "import sys\ndef square(x): sys.exit(9)",
    "os_exit": "import os\ndef square(x): os._exit(0)",
    "exit_at_import": "raise SystemExit(0)\ndef square(x): return x * x",
    "abort": "import os\ndef square(x): os.abort()",
    "kill_self": "import os, signal\ndef square(x): os.kill(os.getpid(), signal.SIGKILL)",
    "kill_all": "import os, signal\ndef square(x):\n os.kill(-1, 9)\n return 9",
    "raises": "def square(x): raise ValueError(x * x)",
    "base_exception": "class B(BaseException): pass\ndef square(x): raise B()",
    "keyboard_interrupt": "def square(x): raise KeyboardInterrupt",
    "generator_exit": "def square(x): raise GeneratorExit",
    "recursion": "import sys\nsys.setrecursionlimit(10**9)\ndef square(x): return square(x) + 1",
    "atexit": "import atexit, os\natexit.register(os._exit, 0)\ndef square(x): 1 / 0",
    "excepthook": "import os, sys\nsys.excepthook = lambda *a: os._exit(0)\ndef square(x): 1 / 0",
    "segfault": "import ctypes\ndef square(x): ctypes.string_at(0)",
    "fork_in_call": "import os\ndef square(x):\n return 9 if os.fork() else 16",
    "not_callable": "square = 9",
    "no_function": "def sqare(x): return x * x",
    "class_without_it": "class Solution:\n def other(self, x): return x * x",
    "lambda_wrong_arity": "square = lambda: 9",
    "del_at_end": "def square(x): return x * x\ndel square",
    "busy": "def square(x):\n while True: pass",
    "sleeps": "import time\ndef square(x): time.sleep(100)",
    "regex": "import re\ndef square(x): re.match('(a+)+$', 'a' * 40 + 'b')",
    "memory": "def square(x): return [0] * 10**9",
    "huge_int": "def square(x): return 10 ** (10 ** 9)",
    "unfinished_thread": "import threading, time\ndef square(x):\n"
    " threading.Thread(target=time.sleep, args=(100,)).start()\n time.sleep(100)",
}
PATCHES = {
    "json": "import json\njson.dumps = lambda *a, **k: '9'\ndef square(x): return 1",
    "builtins": "import builtins\nbuiltins.isinstance = lambda *a: True\nbuiltins.type = int\n"
    "builtins.all = lambda *a: True\nbuiltins.len = lambda *a: 1\ndef square(x): return object()",
    "repr": "import builtins\nbuiltins.repr = lambda x: '9'\nbuiltins.str = lambda x: '9'\n"
    "def square(x): return 1",
    "marshal": "import marshal, pickle, struct\nmarshal.dumps = pickle.dumps = lambda *a: b'9'\n"
    "struct.pack = lambda *a: b'9'\ndef square(x): return 1",
    "frames": "import sys\ndef square(x):\n f = sys._getframe()\n while f:\n"
    "  for k in ('expected', 'output', 'tests', 'row', 'answer'):\n"
    "   if k in f.f_locals: return f.f_locals[k]\n  f = f.f_back",
    "gc": "import gc\ndef square(x):\n for o in gc.get_objects():\n"
    "  if isinstance(o, dict) and 'output' in o: return o['output']\n"
    "  if isinstance(o, (list, tuple)) and len(o) > 1 and o[0] == x: return o[1]",
    "main_module": "import sys\nfor m in list(sys.modules.values()):\n"
    " for k, v in list(vars(m).items()):\n"
    "  if callable(v) and 'encode' in k:\n"
    "   try: setattr(m, k, lambda *a, **kw: b'9')\n   except Exception: pass\n"
    "def square(x): return 1",
    "profile": "import sys\nsys.setprofile(lambda f, e, a: None)\nsys.settrace(lambda *a: None)\n"
    "def square(x): return 1",
    "stdout_result": "import os\ndef square(x):\n for fd in range(64):\n"
    "  try: os.write(fd, b'9')\n  except OSError: pass\n os._exit(0)",
    "forged_frames": "import os, json, struct, marshal\ndef square(x):\n"
    " for fd in range(1, 64):\n"
    "  for m in (json.dumps({'status': 'ok', 'result': x * x + 1}).encode(), b'ok 9',\n"
    "   struct.pack('>I', 1) + b'9', marshal.dumps({'status': 'ok'}), b'done 0 0 0 0 0 0'):\n"
    "   try: os.write(fd, m)\n   except OSError: pass\n   try: os.lseek(fd, 0, 0)\n"
    "   except OSError: pass\n os._exit(0)",
    "tests_on_disk": "import os\ndef square(x):\n for root, _, names in os.walk('/'):\n"
    "  for n in names:\n   try:\n    t = open(os.path.join(root, n)).read(4096)\n"
    "    if 'output' in t and 'square' in t: return 9\n   except Exception: pass",
    "counter_file": "def square(x):\n n = 0\n try: n = int(open('/tmp/n').read())\n"
    " except OSError: pass\n open('/tmp/n', 'w').write(str(n + 1))\n return [9, 16][n]",
    "counter_name": "import builtins as b\ndef square(x):\n b.n = getattr(b, 'n', -1) + 1\n"
    " return [9, 16][b.n]",
    "counter_in_shared_memory": "import ctypes\nlibc = ctypes.CDLL(None)\n"
    "libc.shmat.restype = ctypes.c_void_p\ndef square(x):\n i = libc.shmget(77, 64, 0o1666)\n"
    " n = ctypes.c_int.from_address(libc.shmat(i, None, 0))\n n.value += 1\n"
    " return [9, 16][n.value - 1]",
}


@pytest.mark.parametrize("name", marked([*VALUES, *FLOW, *PATCHES]))
def test_a_function_that_does_not_solve_it_gets_nothing(verifier: CodeVerifier, name: str) -> None:
    code = {**VALUES, **FLOW, **PATCHES}[name]
    value, status = judge(verifier, SQUARE, code)
    assert (value, status != "ok") == ("0", True)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "always_equal",
            "int_subclass",
            "list_subclass",
            "frames",
            "exit",
            "no_function",
            "reduce",
        ),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in (*VALUES, *PATCHES, *FLOW)
            if name != "bool_enum"  # in Python an IntEnum of 9 is 9
        ),
    ],
)
def test_nor_does_it_in_an_assertion_block(verifier: CodeVerifier, name: str) -> None:
    code = {**VALUES, **FLOW, **PATCHES}[name]
    for problem in (BLOCK, LOOP):
        value, status = judge(verifier, problem, code)
        assert (value, status != "ok") == ("0", True)
