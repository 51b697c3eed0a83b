"""Attacks on how a result leaves a jail."""

from __future__ import annotations

import pytest
from code_attacks import BLOCK, LOOP, SQUARE, judge
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox

CHANNEL = {
    "exit_in_del": """
import os
class A:
 def __del__(s): os._exit(0)
a=A()
def square(x):
 return 1
""",
    "exit_from_thread": """
import os,threading,time
def k():
 time.sleep(0.05)
 os._exit(0)
threading.Thread(target=k,daemon=True).start()
def square(x):
 import time
 time.sleep(1)
 return 1
""",
    "exit_from_signal": """
import os,signal
signal.signal(signal.SIGALRM,lambda *a: os._exit(0))
signal.setitimer(signal.ITIMER_REAL,0.01)
def square(x):
 while True: pass
""",
    "systemexit_subclass": """
class E(SystemExit):
 code=0
def square(x):
 raise E
""",
    "replace_posix_exit": """
import posix,os
posix._exit=os._exit=lambda c: None
def square(x):
 raise ValueError
""",
    "exec_self": """
import os,sys
def square(x):
 os.execv(sys.executable,[sys.executable,'-c','import os;os.write(3,b"9\\\\n")'])
""",
    "fork_parent_exit": """
import os,time
def square(x):
 if os.fork():
  os._exit(0)
 os.setsid()
 os.write(3,b'9\\n')
 time.sleep(1)
 os._exit(0)
""",
    "atexit_writes_result": """
import atexit,os
atexit.register(lambda: os.write(3,b'9\\n'))
def square(x):
 return 1
""",
    "atexit_truncates": """
import atexit,os
def w():
 os.ftruncate(3,0)
 os.lseek(3,0,0)
atexit.register(w)
def square(x):
 return 1
""",
    "overwrites_after_return": """
import threading,time,os
def k():
 time.sleep(0.2)
 os.pwrite(3,b'9\\n',0)
threading.Thread(target=k).start()
def square(x):
 return 1
""",
    "patch_encoder": """
import sys
for n in list(sys.modules):
 if n.startswith('prime_'):
  m=sys.modules[n]
  for k in ('encode','write','finish','find_entry'):
   if hasattr(m,k): setattr(m,k,lambda *a,**k:None)
def square(x):
 return 1
""",
    "patch_encoder_any": """
import sys
e=sys.modules['prime_encoder']
e.encode=lambda v,put,d: put('9')
def square(x):
 return 1
""",
    "patch_session_done": """
import sys
z=sys.modules['prime_zygote']
z.reap=lambda *a:(0,0.0,0,0)
z.wait=lambda *a:0
def square(x):
 raise ValueError
""",
    "call_become": """
import sys
def square(x):
 r=sys.modules['prime_runner']
 r.programs={}
 r.run_call((compile('def square(x): return 9','a','exec'),),'square',b'')
""",
    "import_hook": """
import sys
class F:
 def find_spec(s,n,p=None,t=None):
  raise SystemExit(0)
sys.meta_path.insert(0,F())
def square(x):
 import nothing_here
""",
    "settrace_return": """
import sys
def t(frame,ev,arg):
 if frame.f_code.co_name in('encode','run_call'):
  frame.f_locals['value']=9
 return t
sys.settrace(t)
def square(x):
 return 1
""",
    "ctypes_patch_frame": """
import ctypes,sys
def square(x):
 fr=sys._getframe(1)
 fr.f_locals['value']=9
 ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(fr),ctypes.c_int(0))
 return 1
""",
    "prewrite_pad": """
import os
def square(x):
 os.write(3,b' '*10)
 os.lseek(3,0,0)
 return 1
""",
}
VALUES = {
    "dict_collections_module": """
class D(dict):
 __module__='collections'
 __eq__=lambda s,o:True
def square(x):
 return D()
""",
    "class_property_lie": """
class A:
 @property
 def __class__(s): return int
 __eq__=lambda s,o:True
def square(x):
 return A()
""",
    "bool_metaclass": """
class M(type):
 __class__=int
 __eq__=lambda s,o:True
 __hash__=type.__hash__
class A(metaclass=M):
 __class__=int
def square(x):
 return A
""",
    "complex_result": """
def square(x):
 return complex(x*x,1e-9)
""",
    "bytes_result": """
def square(x):
 return b'9'
""",
    "range_result": """
def square(x):
 return range(x*x,x*x+1)
""",
    "memoryview": """
def square(x):
 return memoryview(bytes([9]))
""",
    "float_eps": """
def square(x):
 return x*x+0.4
""",
    "colliding_tuple_keys": """
def square(x):
 return {(i*(2**61-1),):0 for i in range(3000)}
""",
    "surrogate_keys": """
def square(x):
 return {'\\ud800':1}
""",
    "nested_dict_depth": """
def square(x):
 r={}
 for i in range(199): r={'a':r}
 return r
""",
}


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


@pytest.mark.parametrize("name", [*CHANNEL, *VALUES])
def test_a_result_is_what_the_function_returned_and_no_more(
    verifier: CodeVerifier, name: str
) -> None:
    for problem in (SQUARE, BLOCK, LOOP):
        value, status = judge(verifier, problem, {**CHANNEL, **VALUES}[name])
        assert (value, status != "ok") == ("0", True)
