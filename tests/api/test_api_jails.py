"""The parts that jails are made of: results, policies, modules, replies, staged roots."""

from __future__ import annotations

import json
import os
import struct
import sys
from collections import namedtuple
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_core.api import (
    LEVELS,
    FormatError,
    Isolation,
    JailInput,
    Limits,
    Missing,
    Program,
    SandboxError,
    clean_source,
)
from prime_core.api.jails import encoder, staging
from prime_core.api.jails.channel import Channel, Files, read_reply
from prime_core.api.jails.modules import foreign_modules, modules_of, names_streams
from prime_core.api.jails.seccomp import CONDITIONS, REFUSED, bpf_program, kafel_policy
from prime_core.api.jails.values import read_result

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(st.characters(codec=None)),
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.integers() | st.booleans() | st.none(), inner)
    ),
    max_leaves=20,
)


def encode(value) -> bytes:
    """As a jail writes it."""
    parts: list[str] = []
    encoder.encode(value, parts.append, 0)
    return "".join(parts).encode("ascii") + b"\n"


@given(value=plain)
def test_a_result_comes_back_as_it_was(value):
    back = read_result(encode(value))
    assert repr(back) == repr(value)


def test_results_that_json_has_no_word_for_come_back():
    for value in (float("nan"), float("inf"), -float("inf"), -0.0):
        assert repr(read_result(encode(value))) == repr(value)
    for value in (1 << 200, -(1 << 20_000), 1 << 63, -(1 << 63)):  # beyond int's digits, too
        assert read_result(encode(value)) == value


def test_a_named_tuple_is_the_tuple_that_it_is():
    class Liar(namedtuple("Liar", "a b")):
        def __iter__(self):
            return iter("wrong")

    assert repr(read_result(encode([Liar(1, [2])]))) == "[(1, [2])]"
    for kind in (type("T", (tuple,), {}), type("T", (tuple,), {"_fields": property(len)})):
        with pytest.raises(TypeError):
            encode(kind((1,)))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"1",
        b"1\n1\n",
        b"{}\n",
        b"[]\n",
        b"[9]\n",
        b'["0"]\n',
        b"[true,1]\n",
        b"[2,1]\n",
        b"[2,[0],1]\n",
        b'[3,"x"]\n',
        b"[3,1]\n",
        b'[4,"1"]\n',
        b"\xff\n",
        b"[" * 100_000 + b"\n",
        b"[0" + b",[0]" * 600_000 + b"]\n",
        b"[0," * 300 + b"1" + b"]" * 300 + b"\n",
        b"9" * 5000 + b"\n",
    ],
)
def test_what_is_no_result_is_a_format_error(data):
    with pytest.raises(FormatError):
        read_result(data)


@given(data=st.binary(max_size=60))
def test_no_bytes_do_anything_else(data):
    try:
        read_result(data + b"\n")
    except FormatError:
        return


@pytest.mark.parametrize("data", [b"", b"done", b"done 1 2 3 4 5 x", b"done 1 2 3 4 5 6 7", b"-1"])
def test_a_reply_is_numbers(data):
    with pytest.raises(FormatError):
        read_reply(data)
    assert read_reply(b"done 9 1 2000000 3000000 4 5").cpu_seconds == 2.0


def test_both_forms_of_the_policy_refuse_the_same():
    program = bpf_program()
    code = [struct.unpack_from("=HBBI", program, at) for at in range(0, len(program), 8)]
    column = 0 if os.uname().machine == "x86_64" else 1
    compared = {k for operation, _, _, k in code if operation == 0x15}
    for pair in REFUSED.values():
        if pair[column] is not None:
            assert pair[column] in compared
            assert f"SYSCALL[{pair[column]}]" in kafel_policy()
    for name, rule in CONDITIONS.items():
        assert rule.numbers[column] in compared
        assert f" {name}(" in kafel_policy()
    assert all(jump_true <= 255 and jump_false <= 255 for _, jump_true, jump_false, _ in code)
    assert len(code) < 4096  # BPF_MAXINSNS


def test_no_system_call_is_listed_twice():
    for column in (0, 1):
        numbers = [pair[column] for pair in REFUSED.values() if pair[column] is not None]
        numbers += [rule.numbers[column] for rule in CONDITIONS.values()]
        assert len(numbers) == len(set(numbers))


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("import math, heapq as h\nfrom re import *\n", ["heapq", "math", "re"]),
        ("    from collections import deque", ["collections"]),
        ("import collections.abc", ["collections.abc"]),
        ("import numpy, os.path", ["os.path"]),
        ("from . import x\nimport this\nimport antigravity", []),
        ("x = 'import math'", []),
        ("import ,\nimport", []),
    ],
)
def test_imports_are_guessed_from_the_text(source, expected):
    assert modules_of(source) == expected


def test_foreign_modules_and_names_of_streams_are_seen_in_the_text():
    source = "import json, numpy.linalg as l\nfrom scipy import x\nfrom . import y\nimport os.path"
    assert foreign_modules(source) == ["numpy", "scipy"]
    assert [names_streams(t) for t in ("open('/dev/stdin')", "x = '/dev/null'")] == [True, False]


def test_inputs_are_sealed_and_outputs_are_bounded_by_what_is_read():
    files = Files(b"given")
    try:
        with pytest.raises(PermissionError):
            os.write(files.given, b"more")
        with pytest.raises(PermissionError):
            os.ftruncate(files.given, 0)
        assert os.read(files.given, 100) == b"given"
        os.write(files.output, b"x" * 100)
        os.write(files.errors, b"start" + b"y" * 10)
        assert files.read_output(10) == b"x" * 10
        assert files.read_errors(4) == b"yyyy"
        assert files.sizes() == (100, 15)
    finally:
        files.close()


def test_a_place_that_others_may_change_is_not_staged_in(tmp_path):
    closed, shared = tmp_path / "closed", tmp_path / "shared"
    closed.mkdir(mode=0o700)
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(SandboxError, match="closed to other users") as refused:
        staging.stage([closed, shared, Path("/proc/nothing")], other_user=True)
    assert "PRIME_CORE_CACHE" in str(refused.value.fix)
    with pytest.raises(SandboxError, match="others may write there"):
        staging.stage([shared], other_user=False)


def test_staged_roots_hold_an_interpreter_and_no_test_suite(tmp_path_factory):
    root = staging.stage([Path(f"/var/tmp/prime-core-{os.geteuid()}")], other_user=True)
    assert (root.path / "py" / "bin" / "python3").is_file()
    assert (root.library / "prime_zygote.py").is_file()
    names = {path.name for path in root.library.iterdir()}
    assert not names & {"test", "site-packages", "idlelib", "ensurepip"}
    assert list(root.library.glob("__pycache__/prime_zygote.*.pyc"))
    assert len(root.digest) == 64
    assert not list((root.path / "tmp").iterdir())
    assert root.library.name == f"python{sys.version_info[0]}.{sys.version_info[1]}"


# --- the values of the boundary -------------------------------------------------------------------


def test_levels_are_ordered():
    found = Isolation("x", "namespaces", "", (), (Missing("a", "b", "c"),))
    assert [found.at_least(level) for level in LEVELS] == [True, True, True, False]
    assert json.dumps(found.evidence())


@pytest.mark.parametrize(
    "limits",
    [{"cpu_seconds": 0}, {"wall_seconds": -1}, {"memory_mb": 0}, {"stderr_bytes": -1}],
)
def test_limits_are_above_zero(limits):
    with pytest.raises(ValueError, match="above zero"):
        Limits(**limits)


def test_a_call_names_its_entry_and_a_script_does_not():
    assert JailInput().args == ()
    for arguments in ({"kind": "call"}, {"entry": "f"}):
        with pytest.raises(ValueError, match="names its entry"):
            Program("x", **arguments)


def test_cleaning_changes_line_ends_and_a_byte_order_mark_alone():
    assert clean_source("\ufeffa\r\nb\rc\t \n") == "a\nb\nc\t \n"
    assert clean_source("x = '\u00a0\ufeff'") == "x = '\u00a0\ufeff'"


def test_a_channel_whose_other_end_is_gone_says_so():
    import socket

    from prime_core.api.jails.channel import JailLost

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(ours)
    assert channel.receive(0.01) is None
    theirs.close()
    with pytest.raises(JailLost):
        channel.receive(1)
    with pytest.raises(JailLost):
        channel.send({"kind": "stop"})
    channel.close()
