"""Each rule of each contract catches the plugin that breaks it."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count

import pytest
from good_plugins import Halves, Mixed, Parity, Plain

from prime_core.api import (
    Decision,
    Instruction,
    Message,
    Reply,
    Reward,
    Score,
)
from prime_core.api.datasets import tasks_digest
from prime_core.testing.contract import (
    AdvantageContract,
    DataFilterContract,
    EnvironmentContract,
    LengthBudgetContract,
    LossContract,
    RewardFunctionContract,
    VerifierContract,
)
from prime_core.testing.contract.reward import scored_group, scored_rollout

FAILED = (AssertionError, pytest.fail.Exception)


def broken(base: type, **members: object) -> type:
    """A subclass with some members replaced."""
    return type(f"Broken{base.__name__}", (base,), members)


def with_tasks(change) -> type:
    """Parity with its task list changed; the digest stays the changed list's."""

    class Changed(Parity):
        def __init__(self):
            super().__init__()
            self.made = change(self.made)
            self.info = replace(self.info, dataset_digest=tasks_digest(self.made))

    return Changed


def with_info(**fields) -> type:
    class Changed(Parity):
        def __init__(self):
            super().__init__()
            self.info = replace(self.info, **fields)

    return Changed


ticks = count()


@pytest.mark.parametrize(
    ("rule", "environment"),
    [
        ("info_is_complete", with_info(licence="")),
        ("info_is_complete", with_info(dataset_digest="abc")),
        ("info_is_complete", with_info(chance_level=1.0)),
        ("info_is_complete", with_info(score_range=(1.0, 1.0))),
        ("digest_covers_the_tasks", with_info(dataset_digest="0" * 64)),
        ("there_are_tasks_and_random_access", with_tasks(lambda tasks: [])),
        (
            "tasks_are_the_same_every_time",
            with_tasks(lambda tasks: random.sample(tasks, len(tasks))),
        ),
        ("ids_are_unique", with_tasks(lambda tasks: [*tasks, tasks[0]])),
        (
            "tasks_survive_json",
            with_tasks(lambda tasks: [replace(tasks[0], verification={"a": (1, 2)})]),
        ),
        (
            "tasks_survive_json",
            with_tasks(lambda tasks: [replace(tasks[0], metadata={1: "a"})]),
        ),
        (
            "prompts_end_where_the_model_speaks",
            broken(Parity, render=lambda self, task, budget: [Message("assistant", "even")]),
        ),
        (
            "rendering_repeats",
            broken(Parity, render=lambda s, task, budget: [Message("user", str(next(ticks)))]),
        ),
        (
            "prompts_carry_the_instruction",
            broken(Parity, render=lambda self, task, budget: task.prompt),
        ),
        ("gold_scores_highest", broken(Parity, gold=lambda self, task: "three")),
        ("wrong_scores_lower", broken(Parity, wrong=lambda self, task, rng: task.gold)),
        ("wrong_scores_lower", broken(Parity, wrong=lambda self, task, rng: str(next(ticks)))),
        (
            "saying_nothing_never_wins",
            broken(Parity, verify=lambda self, task, completion: Score(1.0)),
        ),
        (
            "scores_lie_in_the_range_whatever_the_model_says",
            broken(Parity, verify=lambda self, task, completion: Score(2.0)),
        ),
        (
            "scores_repeat_in_any_order",
            broken(Parity, verify=lambda self, task, completion: Score(next(ticks) % 2 / 2)),
        ),
        (
            "replies_depend_on_the_state_alone",
            broken(Parity, reply=lambda s, state: Reply((Message("user", str(next(ticks))),))),
        ),
    ],
)
def test_the_environment_contract_catches(rule, environment):
    made = environment()
    tasks = made.tasks()[:24]
    values = {
        "environment": made,
        "make_environment": environment,
        "verifier": made,
        "tasks": tasks,
        "place": "user",
    }
    call(EnvironmentContract(), rule, values)


@pytest.mark.parametrize(
    ("rule", "verify"),
    [
        ("right_answers_score_highest", lambda self, task, completion: Score(0.5)),
        ("wrong_answers_score_lower", lambda self, task, completion: Score(1.0)),
        ("wrong_answers_score_lower", lambda self, task, completion: Score(None, "error")),
        (
            "scores_lie_in_the_range_whatever_the_model_says",
            lambda self, task, completion: Score(float(len(completion.text))),
        ),
        (
            "scores_lie_in_the_range_whatever_the_model_says",
            lambda self, task, completion: Score(0.5, "invalid_output"),
        ),
        (
            "scores_lie_in_the_range_whatever_the_model_says",
            lambda self, task, completion: 1.0,
        ),
        ("saying_nothing_never_wins", lambda self, task, completion: Score(1.0)),
        (
            "scores_repeat_in_any_order",
            lambda self, task, completion: Score(next(ticks) % 2 / 2),
        ),
        (
            "the_task_is_left_alone",
            lambda self, task, completion: task.metadata.update(seen=next(ticks)) or Score(0.0),
        ),
    ],
)
def test_the_verifier_contract_catches(rule, verify):
    make = broken(Parity, verify=verify)
    task = Parity().tasks()[0]
    values = {
        "verifier": make(),
        "make_verifier": make,
        "solved": [(task, "even")],
        "unsolved": [(task, "odd")],
        "score_range": (0.0, 1.0),
    }
    call(VerifierContract(), rule, values)


@pytest.mark.parametrize(
    ("rule", "reward"),
    [
        ("one_finite_reward_per_rollout", lambda self, group: [Reward(0.0)]),
        (
            "one_finite_reward_per_rollout",
            lambda self, group: [Reward(float("nan")) for _ in group.rollouts],
        ),
        (
            "every_rollout_has_the_same_parts",
            lambda self, group: [Reward(0.0, {str(i): 0.0}) for i, _ in enumerate(group.rollouts)],
        ),
        ("rewards_repeat", lambda self, group: [Reward(next(ticks)) for _ in group.rollouts]),
        (
            "the_order_of_rollouts_changes_nothing",
            lambda self, group: [Reward(float(i)) for i, _ in enumerate(group.rollouts)],
        ),
        (
            "a_better_score_never_pays_less",
            lambda self, group: [Reward(-rollout.score.value) for rollout in group.rollouts],
        ),
    ],
)
def test_the_reward_contract_catches(rule, reward):
    make = broken(Plain, reward=reward)
    groups = [scored_group([scored_rollout(i / 4, i + 1) for i in range(4)])]
    values = {"reward_function": make(), "make_reward": make, "groups": groups}
    call(RewardFunctionContract(), rule, values)


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        ("targets_are_positive_integers_or_none", {"draw": lambda *a: 0}),
        ("targets_are_positive_integers_or_none", {"draw": lambda *a: 1.5}),
        ("equal_words_give_equal_targets", {"draw": lambda *a: random.randrange(1, 10**9)}),
        ("global_random_state_is_left_alone", {"draw": lambda *a: random.randrange(1, 9)}),
        (
            "the_instruction_says_the_target",
            {"instruction": lambda self, budget: Instruction("Think briefly.")},
        ),
    ],
)
def test_the_length_budget_contract_catches(rule, members):
    make = broken(Halves, **members)
    tasks = Parity().tasks()[:2]
    values = {"length_budget": make(), "make_length_budget": make, "tasks": tasks}
    call(LengthBudgetContract(), rule, {**values, "node_classes": ["default"]})


@pytest.mark.parametrize(
    ("rule", "members"),
    [
        ("group_decisions_repeat_in_any_order", {"keep_group": lambda s, g: True}),
        (
            "group_decisions_repeat_in_any_order",
            {"keep_group": lambda s, g: Decision(True, str(next(ticks)))},
        ),
        ("group_decisions_repeat_in_any_order", {"keep_group": lambda s, g: Decision(True, "")}),
        (
            "task_decisions_repeat_in_any_order",
            {"keep_task": lambda s, t, p: Decision(True, "x" * 99)},
        ),
    ],
)
def test_the_data_filter_contract_catches(rule, members):
    make = broken(Mixed, **members)
    group = scored_group([scored_rollout(1.0, 1)])
    from prime_core.api import RewardedGroup

    values = {
        "make_data_filter": make,
        "groups": [RewardedGroup("g", "e", group, (Reward(1.0),))] * 2,
        "profiled": [(Parity().tasks()[0], None)],
    }
    call(DataFilterContract(), rule, values)


class Advantage:
    def __init__(self, function):
        self.advantages = function


@pytest.mark.parametrize(
    ("rule", "function"),
    [
        (
            "equal_rewards_give_exactly_zero",
            lambda rewards: [r - sum(rewards) / len(rewards) for r in rewards],
        ),
        ("one_finite_number_per_reward", lambda rewards: [float("inf")] * len(rewards)),
        ("one_finite_number_per_reward", lambda rewards: [0.0]),
        ("a_better_reward_never_gets_less", lambda rewards: [-r for r in rewards]),
        ("the_order_of_rewards_changes_nothing", lambda rewards: list(range(len(rewards)))),
        ("advantages_sum_to_zero", lambda rewards: list(rewards)),
        ("a_shift_changes_nothing", lambda rewards: list(rewards)),
    ],
)
def test_the_advantage_contract_catches(rule, function):
    values = {"advantage": Advantage(function), "size": 7}
    call(AdvantageContract(), rule, values)


@pytest.mark.parametrize(
    ("rule", "loss"),
    [
        ("on_policy_it_is_the_policy_gradient", lambda r, a: -2 * r * a),
        ("no_gradient_points_the_wrong_way", lambda r, a: r * a),
        ("gain_is_clipped", lambda r, a: -r * a),
        ("two_sided_clip", lambda r, a: -(r * a).minimum(r.clamp(0.8, 1.2) * a)),
        ("correction_is_not_clipped", lambda r, a: -r.clamp(0.8, 1.2) * a),
        ("no_advantage_no_gradient", lambda r, a: -r * (a + 1)),
        ("one_finite_loss_per_token", lambda r, a: (-r * a).sum()),
        ("tokens_do_not_mix", lambda r, a: -(r * a) + r.mean()),
        ("masked_tokens_stay_finite", lambda r, a: -r * a),
    ],
)
def test_the_loss_contract_catches(rule, loss):
    class Broken:
        def token_losses(self, logprobs, old_logprobs, advantages, mask):
            return loss((logprobs - old_logprobs).exp(), advantages), {}

    values = {"loss": Broken(), "ratio": 1.5, "advantage": 1.0, "excess": 1.0}
    call(LossContract(), rule, values)


def call(instance: object, rule: str, values: dict[str, object]) -> None:
    """The rule fails."""
    with pytest.raises(FAILED):
        call_plain(instance, rule, values)


def call_plain(instance: object, rule: str, values: dict[str, object]) -> None:
    """Call a contract's test with the values that it asks for."""
    test = getattr(instance, f"test_{rule}")
    wanted = test.__code__.co_varnames[1 : test.__code__.co_argcount]
    test(*(values[name] for name in wanted))
