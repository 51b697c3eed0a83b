from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_core.api.errors import FormatError
from prime_core.assignment import (
    PURPOSES,
    AssignmentKey,
    EnvironmentShare,
    assign,
    beacon,
    group_id,
    group_rng,
    parse_group_id,
)
from prime_core.assignment.groups import scaled_weights

VECTORS = json.loads((Path(__file__).parent / "vectors" / "assignment.json").read_text())
KEY = AssignmentKey("demo", beacon("demo", bytes(32)), "worker-0", 3, 1)
SHARES = (
    EnvironmentShare("arithmetic", 1.0, 5000),
    EnvironmentShare("math", 2.5, 285_000),
    EnvironmentShare("code", 0.25, 7),
)


def _key(index: int) -> AssignmentKey:
    case = VECTORS["keys"][index]
    return AssignmentKey(
        case["run_id"],
        bytes.fromhex(case["beacon"]),
        case["node"],
        int(case["step"]),
        int(case["submission"]),
    )


def test_golden_beacons_and_digests() -> None:
    for case in VECTORS["beacons"]:
        assert beacon(case["run_id"], bytes.fromhex(case["seal"])).hex() == case["beacon"]
    for index, case in enumerate(VECTORS["keys"]):
        assert _key(index).digest().hex() == case["digest"]


def test_golden_words_and_bounded_values() -> None:
    for case in VECTORS["words"]:
        rng = group_rng(_key(case["key"]), int(case["group"]), case["purpose"])
        assert [rng.word() for _ in case["words"]] == [int(word, 16) for word in case["words"]]
    below = VECTORS["below"]
    for draw in below["draws"]:
        rng = group_rng(_key(below["key"]), int(below["group"]), below["purpose"])
        assert [rng.below(int(draw["n"])) for _ in draw["values"]] == [*map(int, draw["values"])]
    uniform = VECTORS["uniform"]
    rng = group_rng(_key(uniform["key"]), int(uniform["group"]), uniform["purpose"])
    assert [rng.uniform().hex() for _ in uniform["values"]] == uniform["values"]


def test_golden_weights_and_assignments() -> None:
    for case in VECTORS["scaled_weights"]:
        assert scaled_weights(case["weights"]) == [*map(int, case["scaled"])]
    for case in VECTORS["assignments"]:
        shares = [EnvironmentShare(**share) for share in case["environments"]]
        got = assign(_key(case["key"]), shares, len(case["groups"]), case["group_size"])
        for group, expected in zip(got, case["groups"], strict=True):
            assert group.group_id == expected["group_id"]
            assert (group.environment, group.task) == (expected["environment"], expected["task"])
            assert list(group.seeds) == [int(seed, 16) for seed in expected["seeds"]]


def test_an_assignment_is_whole_and_in_range() -> None:
    tasks = {share.label: share.task_count for share in SHARES}
    groups = assign(KEY, SHARES, 40, 16)
    assert [group.k for group in groups] == list(range(40))
    for group in groups:
        assert parse_group_id(group.group_id) == (3, "worker-0", 1, group.k)
        assert 0 <= group.task < tasks[group.environment]
        assert len(group.seeds) == 16
        assert all(0 <= seed < 2**63 for seed in group.seeds)
    seeds = [seed for group in groups for seed in group.seeds]
    assert len(set(seeds)) == len(seeds)


def test_every_field_of_the_key_changes_the_assignment() -> None:
    base = assign(KEY, SHARES, 2, 2)
    for change in (
        {"run_id": "other"},
        {"beacon": beacon("demo", bytes([1]) * 32)},
        {"node": "worker-1"},
        {"step": 4},
        {"submission": 2},
    ):
        other = assign(replace(KEY, **change), SHARES, 2, 2)
        assert other[0].seeds != base[0].seeds, change


def test_fields_can_not_run_into_each_other() -> None:
    one = AssignmentKey("ab", bytes(32), "c", 0, 0)
    two = AssignmentKey("a", bytes(32), "bc", 0, 0)
    assert one.digest() != two.digest()


def test_more_groups_or_samples_leave_the_others_as_they_are() -> None:
    few, many = assign(KEY, SHARES, 3, 4), assign(KEY, SHARES, 9, 12)
    for short, long in zip(few, many, strict=False):
        assert (short.environment, short.task) == (long.environment, long.task)
        assert short.seeds == long.seeds[:4]


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(0, 20), st.sampled_from(PURPOSES))
def test_a_plugin_that_draws_more_changes_nothing_else(
    draws: int, group: int, purpose: str
) -> None:
    def others() -> list[int]:
        return [
            group_rng(KEY, g, p).word()
            for g in range(21)
            for p in PURPOSES
            if (g, p) != (group, purpose)
        ]

    before = others()
    rng = group_rng(KEY, group, purpose)
    mine = {rng.word() for _ in range(draws)}
    assert others() == before
    assert mine.isdisjoint(before)


def test_environments_come_up_by_weight() -> None:
    groups = assign(KEY, SHARES, 3000, 1)
    counts = Counter(group.environment for group in groups)
    assert abs(counts["arithmetic"] / 3000 - 1 / 3.75) < 0.03
    assert abs(counts["math"] / 3000 - 2.5 / 3.75) < 0.03
    assert abs(counts["code"] / 3000 - 0.25 / 3.75) < 0.03


def test_the_tiniest_weight_keeps_a_chance() -> None:
    assert scaled_weights([1e-300, 5.0]) == [1, 2**32]


@settings(deadline=None)
@given(
    st.integers(0, 10**15),
    st.from_regex(r"[a-z0-9-]{1,64}", fullmatch=True),
    st.integers(0, 10**9),
    st.integers(0, 10**9),
)
def test_group_ids_parse_back(step: int, node: str, submission: int, k: int) -> None:
    assert parse_group_id(group_id(step, node, submission, k)) == (step, node, submission, k)


@pytest.mark.parametrize(
    "text", ["", "1-2-3", "01-w-0-0", "1-w-0-00", "1-W-0-0", "1-w-0-0\n", "1-w_-0-0", "-1-w-0-0 "]
)
def test_other_group_ids_are_refused(text: str) -> None:
    with pytest.raises(FormatError):
        parse_group_id(text)


@pytest.mark.parametrize("node", ["", "Worker", "a_b", "a/b", "x" * 65])
def test_a_bad_node_name_is_refused(node: str) -> None:
    with pytest.raises(FormatError):
        replace(KEY, node=node)


ELSEWHERE = """
import sys, json
from prime_core.assignment import AssignmentKey, EnvironmentShare, assign, beacon, gumbel
import numpy as np
key = AssignmentKey("demo", beacon("demo", bytes(32)), "worker-0", 3, 1)
shares = [EnvironmentShare("arithmetic", 1.0, 5000), EnvironmentShare("math", 2.5, 285000)]
groups = assign(key, shares, 8, 4)
noise = gumbel(np.array(groups[0].seeds), np.arange(4), np.arange(50))
loaded = [m for m in ("torch", "transformers", "pyarrow") if m in sys.modules]
print(json.dumps([[g.group_id, g.environment, g.task, list(g.seeds)] for g in groups]))
print(noise.tobytes().hex(), loaded)
"""


@pytest.mark.integration
def test_every_process_gets_the_same_assignment_and_noise() -> None:
    outputs: set[Any] = set()
    for seed in ("0", "1", "random"):
        done = subprocess.run(
            [sys.executable, "-c", ELSEWHERE],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert outputs.pop().endswith("[]\n")  # none of the heavy packages was imported
