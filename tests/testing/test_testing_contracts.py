"""The contracts pass for good plugins, and tell authors what they forgot."""

from __future__ import annotations

import pytest
from good_plugins import AsyncParity, Halves, Memory, Mixed, Parity, Plain

from prime_core.testing import contract
from prime_core.testing.contract import (
    AdvantageContract,
    DataFilterContract,
    EnvironmentContract,
    LengthBudgetContract,
    LossContract,
    RewardFunctionContract,
    TrackerContract,
    VerifierContract,
)

pytest_plugins = ["pytester"]


class TestParity(EnvironmentContract):
    @pytest.fixture
    def make_environment(self):
        return Parity


class TestAsyncParity(EnvironmentContract):
    @pytest.fixture
    def make_environment(self):
        return AsyncParity


class TestParityVerifier(VerifierContract):
    @pytest.fixture
    def make_verifier(self):
        return Parity

    @pytest.fixture
    def solved(self):
        return [(task, task.gold) for task in Parity().tasks()[:5]]

    @pytest.fixture
    def unsolved(self):
        return [(Parity().tasks()[0], "odd"), (Parity().tasks()[0], "three")]


class TestPlainReward(RewardFunctionContract):
    @pytest.fixture
    def make_reward(self):
        return Plain


class TestHalves(LengthBudgetContract):
    @pytest.fixture
    def make_length_budget(self):
        return Halves


class TestMixed(DataFilterContract):
    @pytest.fixture
    def make_data_filter(self):
        return Mixed


class TestMemory(TrackerContract):
    @pytest.fixture
    def make_tracker(self):
        return Memory

    @pytest.fixture
    def read_back(self):
        return lambda: Memory.rows


class TestGroupNorm(AdvantageContract):
    @pytest.fixture
    def make_advantage(self):
        from prime_core.trainer.advantages import GroupNorm

        return GroupNorm


class TestGrpo(LossContract):
    @pytest.fixture
    def make_loss(self):
        from prime_core.trainer.loss import GrpoLoss

        return GrpoLoss


def test_every_contract_can_be_imported_by_name():
    for name in contract.__all__:
        assert getattr(contract, name).__name__ == name
    with pytest.raises(AttributeError):
        contract.NothingContract  # noqa: B018


def test_a_forgotten_fixture_is_named(pytester: pytest.Pytester):
    pytester.makepyfile(
        "from prime_core.testing.contract import AdvantageContract\n"
        "class TestMine(AdvantageContract):\n    pass\n"
    )
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-k", "every_member")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*override the fixture 'make_advantage'*"])
