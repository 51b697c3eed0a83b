from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trainer_cases import (
    ALONE,
    CPU,
    NoTrace,
    double,
    flat,
    honest,
    honest_groups,
    make_group,
    optimization,
    rollout,
)

from prime_core.api.errors import RunError
from prime_core.trainer.fsdp import World
from prime_core.trainer.grpo import (
    fix_logprobs,
    make_share,
    micro_losses,
    split_groups,
    train_rollout_step,
)
from prime_core.trainer.measures import Measures
from prime_core.trainer.model import PolicyModel, load_policy
from prime_core.trainer.weights import WeightBank

BOTH = ("sequence_mean", "token_mean")


@pytest.fixture(scope="module")
def policy(tiny_dir) -> PolicyModel:
    return double(load_policy(tiny_dir, temperature=1.0))


def batch() -> list[list]:
    """A group that shares its prompt, and one of several lengths and turns that doesn't."""
    trained = np.array([0, 0, 1, 1, 0, 0, 1, 1, 1], bool)
    mixed = [*(rollout(n, n) for n in (7, 7, 4, 12)), rollout(9, 99, trained=trained)]
    return [make_group(5, seed=3), mixed]


def loss_and_gradient(policy, groups, ranks=1, **settings_) -> tuple[float, torch.Tensor]:
    """What `ranks` ranks compute together: gradients averaged over ranks, as FSDP does."""
    policy.zero_grad()
    total = 0.0
    for rank in range(ranks):
        world = World(rank, ranks, CPU)
        opt = optimization(policy, **settings_)
        share = make_share(groups, opt, world, torch.float64)
        for micro in share.micros:
            logprobs, entropies = policy(micro)
            # an old policy that differs, so that ratios aren't all 1
            micro.old_N = logprobs.detach() - 0.3
            micro.reference_N = logprobs.detach() + 0.2
            losses, _ = micro_losses(micro, logprobs, entropies, opt)
            loss = (losses * micro.weights_N).sum()
            (loss * ranks / ranks).backward()
            total += loss.item()
    return total, flat([p.grad for p in policy.parameters()])


@settings(max_examples=25, deadline=None)
@given(
    capacity=st.integers(3, 60),
    ranks=st.integers(1, 3),
    order=st.permutations(range(5)),
    alone=st.booleans(),
    aggregation=st.sampled_from(BOTH),
)
def test_loss_does_not_depend_on_micro_batches_ranks_order_or_shared_prompts(
    policy, capacity, ranks, order, alone, aggregation
) -> None:
    terms = {"aggregation": aggregation, "entropy_coef": 0.1, "kl_coef": 0.1}
    whole = loss_and_gradient(policy, batch(), terms=terms, pack_tokens=1000)
    groups = [[group[i] for i in order] for group in batch()[::-1]]
    if alone:
        groups = [[one] for group in groups for one in group]
    split = loss_and_gradient(policy, groups, ranks, terms=terms, pack_tokens=capacity)
    assert split[0] == pytest.approx(whole[0], rel=1e-10)
    assert (split[1] - whole[1]).norm() <= 1e-10 * whole[1].norm()


@pytest.mark.parametrize("aggregation", BOTH)
def test_loss_equals_the_papers_formula_computed_naively(policy, aggregation) -> None:
    loss, _ = loss_and_gradient(policy, batch(), terms={"aggregation": aggregation})
    per_token = []
    for one in (one for group in batch() for one in group):
        ratio = np.exp(0.3)
        value = min(min(ratio, 4.0) * one.advantage, np.clip(ratio, 0.8, 1.2) * one.advantage)
        per_token.append([-value] * one.token_count)
    if aggregation == "sequence_mean":
        expected = np.mean([np.mean(row) for row in per_token])
    else:
        expected = np.mean(np.concatenate(per_token))
    assert loss == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("aggregation", BOTH)
def test_sequences_without_trained_tokens_change_neither_loss_nor_gradient(
    policy, aggregation
) -> None:
    masked = rollout(8, 5, trained=np.zeros(8, bool), advantage=100.0)
    terms = {"aggregation": aggregation}
    without = loss_and_gradient(policy, batch(), terms=terms)
    with_it = loss_and_gradient(policy, [*batch(), [masked]], terms=terms)
    assert with_it[0] == pytest.approx(without[0], rel=1e-12)
    assert (with_it[1] - without[1]).norm() <= 1e-10 * without[1].norm()


@pytest.mark.parametrize("aggregation", BOTH)
def test_an_all_masked_batch_has_finite_loss_and_zero_gradient(policy, aggregation) -> None:
    masked = [[rollout(6, s, trained=np.zeros(6, bool)) for s in range(3)]]
    terms = {"aggregation": aggregation, "entropy_coef": 0.1, "kl_coef": 0.1}
    loss, gradient = loss_and_gradient(policy, masked, terms=terms)
    assert loss == 0.0
    assert not gradient.any()


def test_kl_and_entropy_terms_have_gradients_even_where_advantages_are_zero(policy) -> None:
    flat_rewards = [[rollout(8, s, advantage=0.0) for s in range(3)]]
    assert not loss_and_gradient(policy, flat_rewards)[1].any()
    assert loss_and_gradient(policy, flat_rewards, terms={"kl_coef": 0.1})[1].any()
    assert loss_and_gradient(policy, flat_rewards, terms={"entropy_coef": 0.1})[1].any()


def test_groups_are_split_in_order_and_nothing_is_left_out() -> None:
    assert [list(part) for part in split_groups(5, 2)] == [[0, 1], [2, 3, 4]]
    assert [list(part) for part in split_groups(3, 3)] == [[0], [1], [2]]
    with pytest.raises(RunError, match="2 groups for 3 optimizer steps"):
        split_groups(2, 3)


def step(policy, groups, opt, bank=None, version=0) -> dict[str, float]:
    bank = bank or WeightBank(policy, torch.float64)
    bank.remember(version)
    opt.measures = Measures()
    train_rollout_step(policy, groups, version, bank, opt, ALONE, NoTrace())
    return opt.measures.result(ALONE)


def test_on_policy_rollouts_have_ratio_one_then_drift_within_the_step(policy) -> None:
    model = double(policy)
    groups = honest_groups(model, 4, 4)
    measured = step(model, groups, optimization(model, lr=1e-3, optimizer_steps=2))
    assert measured["mismatch/kl"] < 1e-10
    assert measured["drift/kl"] == 0.0
    # the first optimizer step is exactly on-policy, the second isn't: old ones stay fixed
    assert measured["policy/kl_old"] > 0.0
    assert measured["tokens/trained"] == sum(one.token_count for group in groups for one in group)
    # a prompt of 4 tokens goes through the model once a group, not once a rollout
    alone = sum(one.input_count for group in groups for one in group)
    assert measured["tokens/packed"] == alone - 4 * 3 * len(groups)


def test_drift_is_told_apart_from_mismatch_under_the_rollouts_own_version(policy) -> None:
    model = double(policy)
    bank = WeightBank(model, torch.float64)
    bank.remember(0)
    groups = honest_groups(model, 2, 4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.05)
    before = flat(list(model.parameters())).clone()
    opt = optimization(model, lr=1e-9)
    measured = step(model, groups, opt, bank, version=2)
    assert measured["mismatch/kl"] < 1e-10
    assert measured["drift/kl"] > 1e-4
    # the swap gave the weights back: what moved is the update alone
    assert (flat(list(model.parameters())) - before).abs().max() < 1e-6


def test_stale_tokens_weigh_what_the_policy_still_gives_them(policy) -> None:
    """On-policy the cap changes nothing; of a stale batch every micro-batch is weighed."""
    fresh, stale = double(policy), double(policy)
    groups = honest_groups(fresh, 4, 4)
    plain = step(fresh, groups, optimization(double(policy), lr=1e-9))
    capped = step(
        fresh, groups, optimization(double(policy), terms={"importance_sampling_cap": 2.0}, lr=1e-9)
    )
    assert capped["loss/mean"] == pytest.approx(plain["loss/mean"], abs=1e-12)
    assert capped["loss/importance_weight"] == pytest.approx(1.0)
    bank = WeightBank(stale, torch.float64)
    bank.remember(0)
    with torch.no_grad():
        for parameter in stale.parameters():
            parameter.mul_(1.3)
    terms = {"importance_sampling_cap": 1.5}
    opt = optimization(stale, terms=terms, lr=1e-9, pack_tokens=16, mismatch_share=0.25)
    measured = step(stale, groups, opt, bank, version=2)
    assert measured["loss/importance_weight"] != pytest.approx(1.0, abs=1e-3)
    assert 0.0 < measured["loss/importance_capped"] < 1.0


def test_a_share_of_the_micro_batches_is_enough_for_the_mismatch(policy) -> None:
    model = double(policy)
    groups = honest_groups(model, 4, 4)
    opt = optimization(model, lr=1e-9, pack_tokens=16, mismatch_share=0.25)
    assert step(model, groups, opt)["mismatch/kl"] < 1e-10


def test_a_version_that_the_engine_did_not_use_stops_the_run_with_likely_causes(policy) -> None:
    model = double(policy)
    groups = [[dataclasses.replace(o, engine_logprobs=o.engine_logprobs / 0.5) for o in g]
              for g in honest_groups(model, 2, 2)]  # fmt: skip
    before = flat(list(model.parameters())).clone()
    with pytest.raises(RunError, match="nats a token") as caught:
        step(model, groups, optimization(model, max_mismatch_kl=0.05))
    for cause in ("temperature", "truncating sampler", "older", "dtype", "template"):
        assert cause in str(caught.value)
    assert torch.equal(flat(list(model.parameters())), before)


def test_an_engine_logprob_that_is_not_a_number_does_not_pass_the_gate(policy) -> None:
    one = honest(policy, rollout(6, 1))
    bad = dataclasses.replace(one, engine_logprobs=np.where(one.trained, np.nan, 0.0))
    with pytest.raises(RunError, match="nan"):
        step(double(policy), [[bad]], optimization(policy))


def test_reference_logprobs_come_from_version_zero(policy) -> None:
    model = double(policy)
    bank = WeightBank(model, torch.float64)
    bank.remember(0)
    opt = optimization(model, terms={"kl_coef": 0.1})
    share = make_share([[rollout(8, 1)]], opt, ALONE, torch.float64)
    with torch.no_grad():
        at_zero, _ = model(share.micros[0])
        for parameter in model.parameters():
            parameter.mul_(1.1)
    fix_logprobs(model, [share], 0, bank, opt, ALONE)
    assert torch.equal(share.micros[0].reference_N, at_zero)
    assert not torch.equal(share.micros[0].old_N, at_zero)


def test_learning_rate_warms_up_and_norms_are_those_before_clipping(policy) -> None:
    model = double(policy)
    opt = optimization(model, lr=0.4, warmup_steps=4, max_grad_norm=1e-3, optimizer_steps=2)
    before = flat(list(model.parameters())).clone()
    measured = step(model, honest_groups(model, 2, 3), opt)
    assert measured["optimizer/lr"] == pytest.approx(0.2)
    assert measured["optimizer/grad_norm"] > 1e-2
    moved = (flat(list(model.parameters())) - before).norm().item()
    assert moved <= 1e-3 * (0.1 + 0.2) * (1 + 1e-6)
    opt.steps_done = 10
    assert opt.lr == 0.4


def test_a_gradient_that_is_not_finite_stops_the_run_before_the_update(policy) -> None:
    model = double(policy)
    groups = honest_groups(model, 1, 2)
    groups[0][0] = dataclasses.replace(groups[0][0], advantage=float("inf"))
    with pytest.raises(RunError, match="gradient norm"):
        step(model, groups, optimization(model))
    assert all(parameter.isfinite().all() for parameter in model.parameters())


def test_extreme_log_ratios_give_finite_gradients(policy) -> None:
    opt = optimization(policy)
    group = [rollout(6, 1, advantage=-1.0), rollout(6, 2, advantage=1.0)]
    share = make_share([group], opt, ALONE, torch.float64)
    for shift in (-1e4, 1e4):
        policy.zero_grad()
        for micro in share.micros:
            logprobs, entropies = policy(micro)
            micro.old_N = logprobs.detach() + shift
            losses, _ = micro_losses(micro, logprobs, entropies, opt)
            (losses * micro.weights_N).sum().backward()
        assert all(p.grad.isfinite().all() for p in policy.parameters())
    policy.zero_grad()


def test_recomputed_activations_give_the_same_gradient(policy) -> None:
    plain = loss_and_gradient(policy, batch())
    model = double(policy)
    model.recompute_activations()
    again = loss_and_gradient(model, batch())
    assert again[0] == plain[0]
    assert torch.equal(again[1], plain[1])


def test_temperature_of_the_sampler_makes_the_ratio_one(tiny_dir) -> None:
    hot = double(load_policy(tiny_dir, temperature=0.6))
    one = rollout(8, 3)
    cold = double(load_policy(tiny_dir, temperature=1.0))
    measured = step(hot, [[honest(hot, one)]], optimization(hot, lr=1e-9))
    assert measured["mismatch/kl"] < 1e-10
    with pytest.raises(RunError, match="temperature"):
        step(cold, [[honest(hot, one)]], optimization(cold, max_mismatch_kl=1e-3))
