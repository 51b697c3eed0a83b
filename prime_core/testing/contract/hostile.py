"""Hostile programs for `SandboxContract`: each prints `reached` where it got what it must not get.

Each runs once in a jail whose next two inputs are honest; nothing it does may show there.
"""

from __future__ import annotations

from collections.abc import Mapping

# The honest branch reports what it finds in /tmp and on it, which has to be nothing.
HONEST_AFTER = """
import os
if input() == "honest":
    found = os.stat(".")
    marks = os.listxattr(".") + ["times"] * (5 in (found.st_atime, found.st_mtime))
    with open("mine", "w") as file:
        file.write("x")
    print("honest", sorted(set(os.listdir(".")) - {{"mine"}}) + marks)
else:
{hostile}
"""

HOSTILE: Mapping[str, str] = {
    "kills the zygote": """
        import signal
        for number in range(1, 65):
            for target in (os.getppid(), 1):
                if target == os.getpid():
                    continue
                try:
                    os.kill(target, number)
                except OSError:
                    pass
    """,
    "kills everybody": "os.kill(-1, 9)",
    "lowers the zygote's limits": """
        import resource
        try:
            resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))
            print("reached")
        except OSError:
            pass
    """,
    "makes the zygote idle": """
        for action in (
            lambda: os.setpriority(os.PRIO_PROCESS, os.getppid(), 19),
            lambda: os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0)),
            lambda: os.sched_setaffinity(os.getppid(), {0}),
        ):
            try:
                action()
                print("reached")
            except OSError:
                pass
    """,
    "writes to every descriptor": """
        for number in range(3, 1024):
            try:
                os.write(number, b"done 0 0 0 0 0 0")
                print("reached", number)
            except OSError:
                pass
    """,
    "traces the zygote": """
        import ctypes
        libc = ctypes.CDLL(None)
        if libc.ptrace(16, os.getppid(), 0, 0) == 0:
            print("reached by ptrace")
        buffer = ctypes.create_string_buffer(64)
        vector = (ctypes.c_void_p * 2)(ctypes.addressof(buffer), 64)
        if libc.process_vm_readv(os.getppid(), vector, 1, vector, 1, 0) > 0:
            print("reached by process_vm_readv")
        for call in (438, 440, 448):  # pidfd_getfd, process_madvise, process_mrelease
            if libc.syscall(call, os.pidfd_open(os.getpid()), 1, 0, 0, 0) >= 0:
                print("reached", call)
    """,
    "makes a user namespace": """
        import ctypes
        libc = ctypes.CDLL(None)
        if libc.unshare(0x10000000) == 0:
            print("reached by unshare")
        if libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0) > 0:
            print("reached by clone")
        size = ctypes.create_string_buffer(88)
        ctypes.c_uint64.from_buffer(size).value = 0x10000000
        if libc.syscall(435, size, 88) > 0:
            print("reached by clone3")
    """,
    "mounts": """
        import ctypes
        libc = ctypes.CDLL(None)
        if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == 0 or libc.umount2(b"/tmp", 2) == 0:
            print("reached")
    """,
    "reads the host": """
        for path in ("/etc/passwd", "/etc/hostname", "/root", "/home", "/proc/self", "/sys"):
            try:
                os.listdir(path) if os.path.isdir(path) else open(path).read()
                print("reached", path)
            except OSError:
                pass
    """,
    "rewrites the interpreter": """
        import json
        for path in (json.__file__, os.__file__, "/solution.py", "/x"):
            try:
                open(path, "a").write("raise SystemExit")
                print("reached", path)
            except OSError:
                pass
    """,
    "opens sockets": """
        import socket
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_UNIX, socket.AF_NETLINK):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
                try:
                    socket.socket(family, kind)
                    print("reached", family, kind)
                except OSError:
                    pass
    """,
    "uses what the kernel offers": """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        for call in (321, 298, 323, 425, 248, 250, 319, 447, 29, 272, 308, 161, 155, 175, 169):
            if libc.syscall(call, 0, 0, 0, 0, 0) >= 0:
                print("reached", call)
    """,
    "becomes root": """
        for action in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.setgroups([0])):
            try:
                action()
                print("reached")
            except OSError:
                pass
        os.open("s", os.O_CREAT, 0o6777)
    """,
    "leaves a daemon that holds stdout": """
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                import time
                while True:
                    time.sleep(0.001)
                    open("from-beyond", "w").close()
    """,
    "forks without end": """
        while True:
            try:
                os.fork()
            except OSError:
                pass
    """,
    "starts threads without end": """
        import threading, time
        made = 0
        try:
            while made < 10_000:
                threading.Thread(target=time.sleep, args=(60,)).start()
                made += 1
        except RuntimeError:
            os._exit(9)
        print("reached", made)
    """,
    "shares its memory among processes": """
        for _ in range(12):
            if os.fork() == 0:
                break
        block = bytearray(100 << 20)
        import time
        time.sleep(60)
    """,
    "fills its memory": "block = [bytearray(1 << 20) for _ in range(4096)]",
    "maps memory": """
        import mmap
        maps = []
        while True:
            maps.append(mmap.mmap(-1, 16 << 20))
            maps[-1].write(b"x" * (16 << 20))
    """,
    "fills the folder": """
        with open("big", "wb") as file:
            try:
                while True:
                    file.write(b"x" * (1 << 16))
            except OSError:
                pass
    """,
    "makes files without end": """
        try:
            for number in range(3000):
                open(f"{number}", "w").close()
        except OSError:
            pass
    """,
    "nests folders": """
        try:
            for _ in range(200):
                os.mkdir("d" * 200)
                os.chdir("d" * 200)
        except OSError:
            pass
    """,
    "closes its folders": """
        os.makedirs("a/b/c")
        for folder in ("a/b/c", "a/b", "a"):
            os.chmod(folder, 0)
        os.mkfifo("fifo")
        os.symlink("/", "root")
        open("odd\\n\\x01", "w").close()
        os.umask(0o777)
        open("closed", "w").close()
    """,
    "floods stdout": """
        while True:
            os.write(1, b"reache" * 10_000)
    """,
    "floods stderr": """
        while True:
            os.write(2, b"x" * 60_000)
    """,
    "ignores signals and raises limits": """
        import resource, signal
        for number in range(1, 65):
            try:
                signal.signal(number, signal.SIG_IGN)
            except (OSError, ValueError):
                pass
        for name in (resource.RLIMIT_CPU, resource.RLIMIT_AS, resource.RLIMIT_FSIZE):
            try:
                resource.setrlimit(name, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                print("reached", name)
            except (OSError, ValueError):
                pass
        while True:
            pass
    """,
    "holds the interpreter's lock": 'import re\nre.match("(a+)+$", "a" * 64 + "b")',
    "overflows the stack": """
        import sys
        sys.setrecursionlimit(1 << 30)
        def f(): return f() + 1
        f()
    """,
    "crashes": "import ctypes\nctypes.string_at(0)",
    "computes a huge integer": "x = 10 ** 10 ** 9",
    "changes the runner": """
        import builtins, gc, sys
        builtins.print = builtins.open = builtins.exec = None
        for name in list(sys.modules):
            vars(sys.modules[name]).clear() if name.startswith("prime_") else None
        gc.collect()
    """,
    "looks for answers": """
        import gc, sys
        frame = sys._getframe()
        texts = []
        while frame is not None:
            texts.append(repr(frame.f_locals) + repr(frame.f_globals.keys()))
            frame = frame.f_back
        texts += [repr(x)[:10_000] for x in gc.get_objects() if type(x) in (str, bytes, dict)]
        print("reached" if any("exp" + "ected_output" in text for text in texts) else "nothing")
    """,
    "runs back into the zygote's loop": """
        import sys
        zygote = sys.modules["prime_zygote"]
        zygote.wipe("/tmp/nothing") if False else None
        os.fork()
        raise SystemExit
    """,
    "marks its folder": """
        try:
            os.setxattr(".", "user.seen", b"input")
        except OSError:
            pass  # this file system has none
        for path, times in ((".", (5, 5)), ("/dev/null", None)):
            try:
                os.utime(path, times)
                print("reached", path)
            except OSError:
                pass
    """,
    "closes its folder": """
        open("x", "w").close()
        os.chmod(".", 0)
    """,
    "is in the way of who tidies up": """
        for number in range(20):
            os.makedirs(f".moved-{number}/a/b/c")
        os.makedirs("x/y/z")
        os.makedirs(b"\\xff\\n/a")
        os.chmod("x", 0)
    """,
}
