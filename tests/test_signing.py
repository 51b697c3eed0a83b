from __future__ import annotations

import copy
import json
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.signing import (
    Signer,
    canonical,
    read_signed,
    recover,
    sign_message,
    signed_bytes,
    verify_message,
)

VECTORS = json.loads((Path(__file__).parent / "vectors" / "signing.json").read_text())
SECRET = bytes(range(1, 33))
SIGNER = Signer(SECRET)
OTHER = Signer(b"\x07" * 32)
PAYLOADS = st.dictionaries(
    st.text(max_size=8).filter(lambda key: key not in ("signer", "signature")),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.text(max_size=20),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=5,
)


def test_golden_messages() -> None:
    for case in VECTORS:
        signer = Signer(bytes.fromhex(case["private_key"]))
        assert signer.address == case["address"]
        statement = {**case["payload"], "signer": signer.address}
        assert canonical(statement).decode() == case["canonical"]
        assert signer.sign(canonical(statement)) == case["signature"]
        assert sign_message(signer, case["payload"])["signature"] == case["signature"]


@pytest.fixture(scope="module")
def eth_account() -> tuple[Any, Any]:
    """Account and encode_defunct; importing them raises the recursion limit, which is put back."""
    limit = sys.getrecursionlimit()
    from eth_account import Account
    from eth_account.messages import encode_defunct

    sys.setrecursionlimit(limit)
    return Account, encode_defunct


@settings(max_examples=25, deadline=None)
@given(st.binary(max_size=200), st.integers(1, 2**200))
def test_signatures_are_those_of_eth_account_in_both_directions(
    eth_account: tuple[Any, Any], message: bytes, secret: int
) -> None:
    Account, encode_defunct = eth_account
    signer = Signer(secret.to_bytes(32, "big"))
    account = Account.from_key(secret.to_bytes(32, "big"))
    assert signer.address == account.address.lower()
    theirs = account.sign_message(encode_defunct(message)).signature
    assert signer.sign(message) == "0x" + bytes(theirs).hex()
    assert recover(message, "0x" + bytes(theirs).hex()) == signer.address
    mine = Account.recover_message(encode_defunct(message), signature=signer.sign(message))
    assert mine.lower() == signer.address


@settings(deadline=None)
@given(PAYLOADS)
def test_messages_verify_and_read_back(payload: dict[str, Any]) -> None:
    message = sign_message(SIGNER, payload)
    assert verify_message(message, SIGNER.address) == payload
    assert verify_message(json.loads(json.dumps(message)), None) == payload
    read = read_signed(signed_bytes(SIGNER, payload), SIGNER.address.upper().replace("X", "x"))
    assert (read.payload, read.signer) == (payload, SIGNER.address)


@settings(deadline=None)
@given(PAYLOADS)
def test_key_order_does_not_matter(payload: dict[str, Any]) -> None:
    assert canonical(dict(reversed(payload.items()))) == canonical(payload)


def test_canonical_form_is_the_documented_one() -> None:
    value = {"b": [1, None, True], "a": {"ä": "\u2028\n\x01\x7f"}}
    assert canonical(value) == '{"a":{"ä":"\u2028\\n\\u0001\x7f"},"b":[1,null,true]}'.encode()


@pytest.mark.parametrize(
    "value", [1.0, float("nan"), 2**64, -(2**63) - 1, b"x", {1: 2}, "\ud800", {"a": {"b": {1.5}}}]
)
def test_values_without_one_form_are_refused(value: Any) -> None:
    with pytest.raises(FormatError):
        canonical({"x": value})


def test_deep_nesting_is_refused_not_a_crash() -> None:
    value: Any = 0
    for _ in range(100):
        value = [value]
    with pytest.raises(FormatError, match="nested"):
        canonical({"x": value})
    with pytest.raises(FormatError):
        read_signed(b'{"x":' + b"[" * 100_000, None)


def test_changed_messages_and_other_signers_are_refused() -> None:
    message = sign_message(SIGNER, {"step": 1, "sha256": "ab"})
    for change in (
        {"step": 2},
        {"extra": 0},
        {"signer": OTHER.address},
        {"signer": None},
        {"signature": OTHER.sign(b"x")},
        {"signature": "0x"},
        {"signature": 5},
        {"signature": message["signature"].upper()},
    ):
        with pytest.raises(IntegrityError):
            verify_message({**message, **change}, None)
    with pytest.raises(IntegrityError, match="expected"):
        verify_message(message, OTHER.address)
    with pytest.raises(IntegrityError):
        verify_message({"step": 1}, None)


def test_the_second_signature_of_a_message_is_refused() -> None:
    signature = SIGNER.sign(b"message")
    order = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
    high_s = order - int(signature[66:130], 16)
    flipped = {"1b": "1c", "1c": "1b"}[signature[130:]]
    with pytest.raises(IntegrityError, match="canonical form"):
        recover(b"message", signature[:66] + f"{high_s:064x}" + flipped)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 7))
def test_any_flipped_bit_of_a_signed_file_is_found(place: int, bit: int) -> None:
    data = bytearray(signed_bytes(SIGNER, {"run": "demo", "n": 12, "sha256": "00ff" * 8}))
    data[place % len(data)] ^= 1 << bit
    with pytest.raises((IntegrityError, FormatError)):
        read_signed(bytes(data), SIGNER.address)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_reading_junk_raises_nothing_but_our_errors(data: bytes) -> None:
    with pytest.raises((FormatError, IntegrityError)):
        read_signed(data, None)


def test_the_same_json_in_another_spelling_is_refused() -> None:
    message = sign_message(SIGNER, {"n": 1})
    with pytest.raises(FormatError, match="canonical"):
        read_signed(json.dumps(message).encode(), None, where="x.json")


def test_keys_are_kept_in_private_files(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "trainer.key"
    signer = Signer.create(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert [p.name for p in path.parent.iterdir()] == ["trainer.key"]
    assert Signer.load(path).address == signer.address
    with pytest.raises(StoreError, match="can't be written"):
        Signer.create(path)
    assert Signer.load(path).address == signer.address
    path.chmod(0o644)
    with pytest.raises(StoreError, match="chmod 600"):
        Signer.load(path)
    with pytest.raises(StoreError, match="can't be read"):
        Signer.load(tmp_path / "none.key")


@pytest.mark.parametrize("text", ["", "0x12", "zz" * 33, "0x" + "0" * 64, "0x" + "f" * 64])
def test_files_that_hold_no_key_are_refused_without_showing_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.key"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(FormatError) as caught:
        Signer.load(path)
    shown = "".join(traceback.format_exception(caught.value))
    assert len(text) < 8 or text.removeprefix("0x") not in shown


def test_a_key_never_shows_itself() -> None:
    for shown in (repr(SIGNER), str(SIGNER), f"{SIGNER!s}", f"{[SIGNER]}"):
        assert SECRET.hex() not in shown
        assert SIGNER.address in shown
    with pytest.raises(TypeError):
        pickle.dumps(SIGNER)
    with pytest.raises(TypeError):
        copy.deepcopy(SIGNER)


@pytest.mark.integration
def test_importing_loads_none_of_the_slow_packages() -> None:
    code = (
        "import sys, prime_core.signing; "
        "print([m for m in ('eth_account', 'pydantic', 'web3', 'torch') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("[]", "['pydantic']")  # the api package needs pydantic
