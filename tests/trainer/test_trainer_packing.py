from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trainer_cases import CPU, rollout

from prime_core.api.errors import RunError
from prime_core.trainer.attention import SegmentRun, segment_attention
from prime_core.trainer.model import PolicyModel, load_policy
from prime_core.trainer.packing import (
    equal_runs,
    first_fit_decreasing,
    pack,
    plan,
)


@pytest.fixture(scope="module")
def policy(tiny_dir) -> PolicyModel:
    return load_policy(tiny_dir, temperature=1.0)


@given(
    lengths=st.lists(st.integers(1, 40), max_size=30),
    capacity=st.integers(1, 64),
    ranks=st.integers(1, 4),
)
def test_a_plan_holds_every_sample_once_and_gives_every_rank_as_many_micro_batches(
    lengths, capacity, ranks
) -> None:
    planned = plan(lengths, capacity, ranks)
    assert sorted(i for rank in planned for one in rank for i in one) == list(range(len(lengths)))
    assert len({len(rank) for rank in planned}) == 1
    assert len(planned[0]) >= 1
    for one in (one for rank in planned for one in rank):
        assert sum(lengths[i] for i in one) <= capacity or len(one) == 1
    bins = first_fit_decreasing(lengths, capacity)
    assert sum(1 for rank in planned for one in rank if not one) < ranks or not bins


def test_first_fit_decreasing_fills_well() -> None:
    lengths = np.random.default_rng(0).lognormal(5, 0.6, 200).astype(int).clip(1, 1000).tolist()
    bins = first_fit_decreasing(lengths, 2048)
    assert sum(lengths) / (2048 * len(bins)) > 0.9


def test_equal_neighbours_become_one_run() -> None:
    runs = equal_runs([3, 3, 2, 2, 2, 1])
    assert runs == (SegmentRun(0, 3, 2), SegmentRun(6, 2, 3), SegmentRun(12, 1, 1))


def test_positions_restart_and_targets_are_the_next_token_of_the_same_sample() -> None:
    first, second = rollout(5, 0), rollout(3, 1)
    micro = pack([first, second], [0.25, 0.5], CPU)
    assert micro.positions_T.tolist() == [0, 1, 2, 3, 0, 1]
    assert micro.inputs_T.tolist() == [*first.token_ids[:-1], *second.token_ids[:-1]]
    assert micro.targets_T.tolist() == [*first.token_ids[1:], *second.token_ids[1:]]
    assert micro.mask_T.tolist() == [False, True, True, True, False, True]
    assert micro.weights_T.tolist() == [0.0, 0.25, 0.25, 0.25, 0.0, 0.5]
    assert micro.advantages_T[-1].item() == pytest.approx(second.advantage)
    assert micro.engine_T[-1].item() == pytest.approx(float(second.engine_logprobs[-1]))


def test_only_model_tokens_of_several_turns_are_trained() -> None:
    trained = np.array([0, 0, 1, 1, 0, 0, 1], bool)  # prompt, turn, environment, turn
    one = rollout(7, 0, trained=trained)
    assert one.token_count == 3
    assert pack([one], [1.0], CPU).mask_T.tolist() == trained[1:].tolist()


def test_a_pad_token_that_equals_eos_is_trained_where_the_model_said_it() -> None:
    eos = 45
    one = rollout(4, 0, token_ids=np.array([eos, 3, 4, eos]))
    assert pack([one], [1.0], CPU).mask_T.tolist() == [False, True, True]


def logprobs(policy: PolicyModel, rollouts) -> list[torch.Tensor]:
    micro = pack(rollouts, [1.0] * len(rollouts), CPU)
    with torch.no_grad():
        values, entropies = policy(micro)
    sizes = [len(one.token_ids) - 1 for one in rollouts]
    return list(zip(values.split(sizes), entropies.split(sizes), strict=True))


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(2, 17), min_size=1, max_size=9), seed=st.integers(0, 999))
def test_packed_log_probabilities_equal_unpacked_ones(policy, lengths, seed) -> None:
    double = copy.deepcopy(policy).double()
    rollouts = [rollout(n, seed + i, prompt=1) for i, n in enumerate(sorted(lengths))]
    for one, (packed, entropy) in zip(rollouts, logprobs(double, rollouts), strict=True):
        ((alone, alone_entropy),) = logprobs(double, [one])
        torch.testing.assert_close(packed, alone, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(entropy, alone_entropy, rtol=1e-10, atol=1e-12)


def test_packed_float32_log_probabilities_equal_the_plain_models(policy, tiny_dir) -> None:
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(tiny_dir, attn_implementation="eager")
    rollouts = [rollout(n, n, prompt=1) for n in (12, 12, 9, 5, 5, 2)]
    for one, (packed, _) in zip(rollouts, logprobs(policy, rollouts), strict=True):
        ids = torch.from_numpy(one.token_ids)
        with torch.no_grad():
            logp = torch.log_softmax(plain(ids[None]).logits[0, :-1].float(), -1)
        expected = logp.gather(1, ids[1:, None]).squeeze(1)
        torch.testing.assert_close(packed, expected, rtol=1e-5, atol=1e-5)


def test_no_sample_sees_another(policy) -> None:
    before = [rollout(9, 1), rollout(9, 2), rollout(4, 3)]
    after = [rollout(9, 7), before[1], rollout(4, 8)]
    assert torch.equal(logprobs(policy, before)[1][0], logprobs(policy, after)[1][0])
    assert not torch.equal(logprobs(policy, before)[0][0], logprobs(policy, after)[0][0])


def test_attention_of_a_run_is_bit_equal_to_attention_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 50, 8, generator=generator)
    key, value = (torch.randn(1, 2, 50, 8, generator=generator) for _ in range(2))
    module = torch.nn.Identity()
    lengths = [11, 11, 11, 7, 5, 5]
    packed, _ = segment_attention(
        module, query, key, value, None, segment_runs=equal_runs(lengths), scaling=0.3
    )
    start = 0
    for length in lengths:
        part = slice(start, start + length)
        alone, _ = segment_attention(
            module,
            query[:, :, part],
            key[:, :, part],
            value[:, :, part],
            None,
            segment_runs=(SegmentRun(0, length, 1),),
            scaling=0.3,
        )
        assert torch.equal(packed[:, part], alone)
        start += length


def test_samples_beyond_the_attention_window_are_refused_not_mistrained() -> None:
    tensors = [torch.zeros(1, 1, 5, 4)] * 3
    runs = (SegmentRun(0, 5, 1),)
    with pytest.raises(RunError, match="window 4"):
        segment_attention(torch.nn.Identity(), *tensors, None, segment_runs=runs, sliding_window=4)
    with pytest.raises(RunError, match="soft caps"):
        segment_attention(torch.nn.Identity(), *tensors, None, segment_runs=runs, softcap=30.0)


def test_a_dummy_trains_nothing_and_has_a_gradient_of_zero(policy) -> None:
    micro = pack([], [], CPU)
    logp, entropy = policy(micro)
    assert logp.tolist() == entropy.tolist() == [0.0]
    (logp * micro.weights_T).sum().backward()
    gradients = [p.grad for p in policy.parameters()]
    assert all(gradient is not None and not gradient.any() for gradient in gradients)
    policy.zero_grad()


def test_a_model_that_changes_its_logits_is_refused(tiny_dir) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_dir)
    model.config.final_logit_softcapping = 30.0
    with pytest.raises(RunError, match="final_logit_softcapping"):
        PolicyModel(model, 1.0)
