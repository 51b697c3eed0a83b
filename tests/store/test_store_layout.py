from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api.errors import FormatError, StoreError
from prime_core.store import layout

NODES = st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True)


def test_paths_are_the_documented_ones() -> None:
    assert layout.dispatch_path(3, "worker-0", 7) == "steps/000003/dispatches/worker-0-00007.json"
    assert (
        layout.submission_path(3, "worker-0", 7)
        == "steps/000003/submissions/worker-0-00007.parquet"
    )
    assert (
        layout.submission_signature_path(3, "worker-0", 7)
        == "steps/000003/submissions/worker-0-00007.sig.json"
    )
    assert layout.receipt_path(3, "worker-0", 7) == "steps/000003/receipts/worker-0-00007.json"
    assert layout.closed_path(3) == "steps/000003/closed.json"
    assert layout.policy_dir(12) == "policies/000012"
    assert layout.policy_shard_path(12, 0) == "policies/000012/shard-00000.bin"
    assert layout.outcomes_path(1) == "outcomes/00000001.parquet"
    assert layout.tasks_path("arithmetic") == "tasks/arithmetic.json"
    assert layout.checkpoint_dir(4) == "checkpoints/000004"


@settings(deadline=None)
@given(NODES, st.integers(0, 2**31 - 1), st.sampled_from([".json", ".parquet", ".sig.json"]))
def test_member_names_parse_back(node: str, n: int, suffix: str) -> None:
    name = layout.submission_path(0, node, n).rsplit("/", 1)[1].removesuffix(".parquet") + suffix
    assert layout.parse_member(name) == (node, n)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "x.json",
        "Worker-00001.json",
        "w-1.json",
        "w-000001.json",
        "w-00001.txt",
        "w-00001.json\n",
    ],
)
def test_other_member_names_are_refused(name: str) -> None:
    with pytest.raises(FormatError):
        layout.parse_member(name)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/etc/passwd",
        "a//b",
        "../a",
        "a/../b",
        "a/..",
        ".hidden",
        "a/.tmp-1",
        "a\\b",
        "a\0b",
        "é",
    ],
)
def test_paths_that_leave_the_store_are_refused(path: str) -> None:
    with pytest.raises(StoreError, match="can't name an object"):
        layout.check_path(path)


@pytest.mark.parametrize("label", ["../x", "", "a/b", ".x"])
def test_labels_that_are_no_file_names_are_refused(label: str) -> None:
    with pytest.raises(StoreError):
        layout.tasks_path(label)


def test_numbered_directories_parse_back_and_others_are_ignored() -> None:
    assert layout.parse_numbered("000012") == 12
    assert layout.parse_numbered("1234567") == 1234567
    assert layout.parse_numbered("0000012") is None
    assert layout.parse_numbered("12") is None
    assert layout.parse_numbered("trash") is None
