"""`prime-core doctor sandbox`: what it says here, and on a host that refuses namespaces."""

from __future__ import annotations

import json
import platform
import subprocess
import sys

import pytest

from prime_core.api import LEVELS
from prime_core.cli.doctor import conclusion, text
from prime_core.testing.privileges import namespaces_refused, reachable_level

pytestmark = pytest.mark.integration

# What a container runtime's default profile does: no new namespaces, no mounts; clone3 is hidden.
REFUSING = """
import ctypes, runpy, struct, sys
NUMBERS = {"x86_64": (56, 272, 165, 435), "aarch64": (220, 97, 40, 435)}[%r]
clone, unshare, mount, clone3 = NUMBERS
allow, refuse, hide = 0x7FFF0000, 0x00050001, 0x00050026
code = [(0x20, 0, 0, 0)]
for number, answer in ((unshare, refuse), (mount, refuse), (clone3, hide)):
    code += [(0x15, 0, 1, number), (0x06, 0, 0, answer)]
code += [(0x15, 0, 4, clone), (0x20, 0, 0, 16), (0x54, 0, 0, 0x7E020000), (0x15, 1, 0, 0)]
code += [(0x06, 0, 0, refuse), (0x06, 0, 0, allow)]
text = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *each) for each in code))
class Filter(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]
program = Filter(len(code), ctypes.addressof(text))
libc = ctypes.CDLL(None)
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, ctypes.byref(program), 0, 0) == 0
sys.argv = ["prime-core", *sys.argv[1:]]
runpy.run_module("prime_core", run_name="__main__")
"""


def doctor(*arguments: str, refusing: bool = False) -> tuple[int, dict]:
    start = ["-c", REFUSING % platform.machine()] if refusing else ["-m", "prime_core"]
    command = [sys.executable, *start, "doctor", "sandbox", *arguments, "--json"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.stdout, ended.stderr
    return ended.returncode, json.loads(ended.stdout)


@pytest.mark.skipif(namespaces_refused() is not None, reason=str(namespaces_refused()))
def test_here_it_finds_what_a_launch_finds():
    code, found = doctor("nsjail")
    (row,) = found["sandboxes"]
    assert (code, row["level"]) == (0, reachable_level())
    assert row["trials"]
    assert all(row["trials"].values()), row["trials"]
    assert {"net_namespace", "seccomp", "no_capabilities"} <= set(row["holds"])


def test_on_a_host_without_namespaces_it_says_how_to_get_them():
    code, found = doctor("nsjail", refusing=True)
    (row,) = found["sandboxes"]
    assert (code, row["level"], found["reached"]) == (1, "none", False)
    assert "seccomp=unconfined" in json.dumps(row["missing"])
    assert [each["name"] for each in row["missing"]] == ["user_namespaces"]


def test_on_a_host_without_namespaces_the_weaker_sandbox_says_its_level():
    code, found = doctor("landlock", "--level", "process", refusing=True)
    (row,) = found["sandboxes"]
    if row["level"] == "none" and "landlock" in json.dumps(row["missing"]):
        pytest.skip("this kernel has no Landlock")
    assert (code, row["level"]) == (0, "process")
    assert row["reaches"] == {"process": True, "namespaces": False, "cgroups": False}


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ({"nsjail": "cgroups"}, "nothing is to be done"),
        ({"nsjail": "namespaces"}, "could be stronger"),
        ({"nsjail": "none", "bwrap": "cgroups"}, 'sandbox = { use = "bwrap" }'),
        ({"nsjail": "none", "landlock": "process"}, "do what stands under missing"),
        ({"bwrap": "cgroups"}, "wasn't examined"),
    ],
)
def test_it_ends_with_what_a_run_will_use(levels, words):
    rows = [
        {
            "sandbox": name,
            "reaches": {
                each: LEVELS.index(level) >= LEVELS.index(each) for each in LEVELS if each != "none"
            },
        }
        for name, level in levels.items()
    ]
    assert words in conclusion(rows, "nsjail")


def test_people_read_what_a_level_means_and_how_to_get_what_is_missing():
    row = {
        "sandbox": "x",
        "distribution": "x 1",
        "level": "namespaces",
        "policy_digest": "ab" * 32,
        "holds": ["seccomp"],
        "trials": {"answers": True, "ends a flood": False},
        "missing": [{"name": "memory_cgroup", "why": "no file system", "fix": "run as root"}],
    }
    assert text(row).splitlines() == [
        "x: level namespaces (a root, network and processes of its own; memory limited for each "
        "process)",
        "  from     x 1",
        "  policy   abababababababab (equal on two hosts: the same jail)",
        "  holds    seccomp",
        "  trials   1 of 2 passed: answers",
        "  FAILS    ends a flood",
        "  missing  memory_cgroup: no file system",
        "           fix: run as root",
    ]


def test_an_unknown_sandbox_is_an_error():
    command = [sys.executable, "-m", "prime_core", "doctor", "sandbox", "nothing"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert "nothing" in ended.stderr
