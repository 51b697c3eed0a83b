"""Programs that leave something for the next input, to count the inputs or to keep them."""

from __future__ import annotations

import pytest
from code_attacks import YES_NO, judge
from prime_verifier_code import CodeParams, CodeVerifier

from prime_core.api import Sandbox

STATE = {
    "xattr_counter": """
import os
try: os.getxattr('/tmp','user.n'); n=1
except OSError: n=0
os.setxattr('/tmp','user.n',b'1')
print(['YES','NO'][n])
""",
    "mode_counter": """
import os
n=os.stat('/tmp').st_mode&1
os.chmod('/tmp',0o776)
print(['NO','YES'][n])
""",
    "utime_counter": """
import os
n=os.stat('/tmp').st_mtime==5
try: os.utime('/tmp',(5,5))
except OSError: pass
print(['YES','NO'][n])
""",
    "null_counter": """
import os,time
n=time.time()-os.stat('/dev/null').st_mtime<2
try: os.utime('/dev/null')
except OSError: pass
print(['YES','NO'][n])
""",
    "shm_counter": """
from multiprocessing import shared_memory as s
try: s.SharedMemory('n',create=True,size=1); n=0
except FileExistsError: n=1
print(['YES','NO'][n],flush=True)
import os
os._exit(0)
""",
    "sem_counter": """
import _multiprocessing as m
try: m.SemLock(0,1,1,'/abc',False); n=0
except FileExistsError: n=1
print(['YES','NO'][n],flush=True)
import os
os._exit(0)
""",
    "zygote_globals": """
import sys
r=sys.modules['prime_runner']
n=getattr(r,'n',0)
r.n=1
print(['YES','NO'][n])
""",
    "daemon_counter": """
import os,time
if os.fork()==0:
 os.setsid()
 while True:
  open('/tmp/n','w').close()
  time.sleep(0.001)
time.sleep(0.05)
print(['YES','YES'][0])
""",
    "pool_workers_left": """
from multiprocessing import Pool
p=Pool(2)
print('YES')
""",
    "vfork_orphan": """
import subprocess,sys
subprocess.Popen([sys.executable,'-c','import time;time.sleep(99)'])
print('YES')
""",
}


@pytest.fixture
def verifier(jails: Sandbox) -> CodeVerifier:
    return CodeVerifier(CodeParams(), jails)


@pytest.mark.parametrize("name", STATE)
def test_a_program_cannot_count_the_inputs_it_was_given(verifier: CodeVerifier, name: str) -> None:
    value, status = judge(verifier, YES_NO, STATE[name])
    assert (value, status != "ok") == ("0", True)


def test_what_counts_would_pass_if_it_worked(verifier: CodeVerifier) -> None:
    assert judge(verifier, YES_NO, "print(['YES', 'NO'][int(input()) - 1])") == ("1", "ok")
