from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trainer_cases import CPU, double, make_group, pack_alone, rollout

from prime_core.api.errors import RunError
from prime_core.trainer.attention import BranchRun, Segments, TrunkRun, segment_attention
from prime_core.trainer.micro import pack
from prime_core.trainer.model import PolicyModel, load_policy
from prime_core.trainer.packing import Bundle, bundle, first_fit_decreasing, plan


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


def test_positions_restart_and_each_trained_token_has_the_row_before_it() -> None:
    first, second = rollout(5, 0), rollout(3, 1)
    bundles = [Bundle((0,), 0, 4), Bundle((1,), 0, 2)]
    micro = pack([first, second], bundles, [0.25, 0.5], CPU)
    assert micro.positions_T.tolist() == [0, 1, 2, 3, 0, 1]
    assert micro.inputs_T.tolist() == [*first.token_ids[:-1], *second.token_ids[:-1]]
    assert micro.rows_N.tolist() == [1, 2, 3, 5]
    assert micro.targets_N.tolist() == [*first.token_ids[2:], *second.token_ids[2:]]
    assert micro.weights_N.tolist() == [0.25, 0.25, 0.25, 0.5]
    assert micro.advantages_N[-1].item() == pytest.approx(second.advantage)
    assert micro.engine_N[-1].item() == pytest.approx(float(second.engine_logprobs[-1]))
    assert micro.segments == Segments((TrunkRun(0, 4, 1), TrunkRun(4, 2, 1)), ())


def test_a_shared_prompt_is_computed_once_and_predicts_every_first_token() -> None:
    group = make_group(3, seed=1, prompt=4, longest=5)
    group[1] = replace(group[1], **{  # a completion of one token needs no input of its own
        name: getattr(group[1], name)[:5] for name in ("token_ids", "trained", "engine_logprobs")
    })  # fmt: skip
    (one,) = bundle([group], 100)
    assert one == Bundle((0, 1, 2), 4, 4 + sum(r.input_count - 4 for r in group))
    micro = pack(group, [one], [1.0, 2.0, 3.0], CPU)
    assert len(micro.inputs_T) == one.inputs
    assert micro.inputs_T[:4].tolist() == group[0].token_ids[:4].tolist()
    ends = np.cumsum([0, *(r.token_count for r in group)])
    for start, end, rollout_ in zip(ends, ends[1:], group, strict=False):
        assert micro.rows_N[start] == 3
        assert micro.targets_N[start:end].tolist() == rollout_.token_ids[4:].tolist()
        places = micro.positions_T[micro.rows_N[start:end]]
        assert places.tolist() == list(range(3, len(rollout_.token_ids) - 1))


def test_prompts_are_shared_only_where_it_pays_and_only_when_they_are_equal() -> None:
    short_prompt = make_group(4, seed=1, prompt=1, longest=30)
    assert all(one.shared == 0 for one in bundle([short_prompt], 1000))
    other = [*make_group(2, seed=1), rollout(9, 5, prompt=4)]
    assert [one.shared for one in bundle([other], 1000)] == [0, 0, 0]
    untrained = [*make_group(2, seed=1), rollout(9, 5, trained=np.zeros(9, bool))]
    assert [one.shared for one in bundle([untrained], 1000)] == [0, 0, 0]


@given(
    sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4),
    capacity=st.integers(1, 40),
    prompt=st.integers(1, 12),
)
def test_bundles_hold_every_rollout_once_within_the_capacity(sizes, capacity, prompt) -> None:
    groups = [make_group(size, seed, prompt) for seed, size in enumerate(sizes)]
    rollouts = [one for group in groups for one in group]
    bundles = bundle(groups, capacity)
    assert [i for one in bundles for i in one.members] == list(range(len(rollouts)))
    for one in bundles:
        assert one.inputs <= capacity or len(one.members) == 1
        expected = one.shared + sum(rollouts[i].input_count - one.shared for i in one.members)
        assert one.inputs == expected
        assert len(pack(rollouts, [one], [1.0] * len(rollouts), CPU).inputs_T) == one.inputs


def test_only_model_tokens_of_several_turns_are_trained() -> None:
    trained = np.array([0, 0, 1, 1, 0, 0, 1], bool)  # prompt, turn, environment, turn
    one = rollout(7, 0, trained=trained)
    assert one.token_count == 3
    assert pack_alone([one]).rows_N.tolist() == [1, 2, 5]


def test_a_pad_token_that_equals_eos_is_trained_where_the_model_said_it() -> None:
    eos = 45
    one = rollout(4, 0, token_ids=np.array([eos, 3, 4, eos]))
    assert pack_alone([one]).targets_N.tolist() == [4, eos]


def logprobs(policy: PolicyModel, rollouts, bundles=None) -> list[tuple]:
    dtype = next(policy.parameters()).dtype
    if bundles is None:
        micro = pack_alone(rollouts, dtype)
    else:
        micro = pack(rollouts, bundles, [1.0] * len(rollouts), CPU, dtype)
    with torch.no_grad():
        values, entropies = policy(micro)
    order = [i for one in bundles for i in one.members] if bundles else range(len(rollouts))
    sizes = [rollouts[i].token_count for i in order]
    return list(zip(values.split(sizes), entropies.split(sizes), strict=True))


@settings(max_examples=25, deadline=None)
@given(lengths=st.lists(st.integers(2, 17), min_size=1, max_size=9), seed=st.integers(0, 999))
def test_packed_log_probabilities_equal_unpacked_ones(policy, lengths, seed) -> None:
    model = double(policy)
    rollouts = [rollout(n, seed + i, prompt=1) for i, n in enumerate(sorted(lengths)[::-1])]
    for one, (packed, entropy) in zip(rollouts, logprobs(model, rollouts), strict=True):
        ((alone, alone_entropy),) = logprobs(model, [one])
        torch.testing.assert_close(packed, alone, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(entropy, alone_entropy, rtol=1e-10, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(
    sizes=st.lists(st.integers(2, 6), min_size=1, max_size=4),
    prompt=st.integers(2, 9),
    capacity=st.integers(10, 200),
)
def test_log_probabilities_behind_a_shared_prompt_equal_unpacked_ones(
    policy, sizes, prompt, capacity
) -> None:
    model = double(policy)
    groups = [make_group(size, seed, prompt + seed % 2) for seed, size in enumerate(sizes)]
    rollouts = [one for group in groups for one in group]
    bundles = sorted(bundle(groups, capacity), key=lambda one: -(one.shared or one.inputs))
    members = [i for one in bundles for i in one.members]
    found = logprobs(model, rollouts, bundles)
    for index, (packed, entropy) in zip(members, found, strict=True):
        ((alone, alone_entropy),) = logprobs(model, [rollouts[index]])
        torch.testing.assert_close(packed, alone, rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(entropy, alone_entropy, rtol=1e-10, atol=1e-12)


def test_packed_float32_log_probabilities_equal_the_plain_models(policy, tiny_dir) -> None:
    from transformers import AutoModelForCausalLM

    plain = AutoModelForCausalLM.from_pretrained(tiny_dir, attn_implementation="eager")
    alone = [rollout(n, n, prompt=1) for n in (12, 12, 9, 5, 5, 2)]
    for rollouts in (alone, make_group(6, seed=5)):
        bundles = bundle([rollouts], 1000)
        bundles.sort(key=lambda one: -(one.shared or one.inputs))
        found = logprobs(policy, rollouts, bundles)
        for index, (packed, _) in zip([i for b in bundles for i in b.members], found, strict=True):
            one = rollouts[index]
            ids = torch.from_numpy(one.token_ids)
            with torch.no_grad():
                logp = torch.log_softmax(plain(ids[None]).logits[0, :-1].float(), -1)
            expected = logp.gather(1, ids[1:, None]).squeeze(1)[torch.from_numpy(one.trained[1:])]
            torch.testing.assert_close(packed, expected, rtol=1e-5, atol=1e-5)


def test_no_sample_sees_another(policy) -> None:
    before = [rollout(9, 1), rollout(9, 2), rollout(4, 3)]
    after = [rollout(9, 7), before[1], rollout(4, 8)]
    assert torch.equal(logprobs(policy, before)[1][0], logprobs(policy, after)[1][0])
    assert not torch.equal(logprobs(policy, before)[0][0], logprobs(policy, after)[0][0])


def test_no_branch_sees_its_sibling_or_another_trunk(policy) -> None:
    groups = [make_group(3, seed=1), make_group(3, seed=2)]
    rollouts = [one for group in groups for one in group]
    before = logprobs(policy, rollouts, bundle(groups, 1000))
    changed = list(rollouts)
    changed[0] = replace(rollouts[0], token_ids=np.append(rollouts[0].token_ids[:-1], 39))
    changed[0].token_ids[4:] = 7
    changed[3:] = [replace(one, token_ids=(one.token_ids + 1) % 40) for one in rollouts[3:]]
    after = logprobs(policy, changed, bundle([changed[:3], changed[3:]], 1000))
    assert torch.equal(before[1][0], after[1][0])
    assert torch.equal(before[2][0], after[2][0])
    assert not torch.equal(before[4][0], after[4][0])


def test_attention_of_a_run_is_bit_equal_to_attention_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(1, 4, 50, 8, generator=generator)
    key, value = (torch.randn(1, 2, 50, 8, generator=generator) for _ in range(2))
    module = torch.nn.Identity()
    runs = (TrunkRun(0, 11, 3), TrunkRun(33, 7, 1), TrunkRun(40, 5, 2))
    packed, _ = segment_attention(
        module, query, key, value, None, segments=Segments(runs, ()), scaling=0.3
    )
    for start, length in ((0, 11), (11, 11), (22, 11), (33, 7), (40, 5), (45, 5)):
        part = slice(start, start + length)
        alone, _ = segment_attention(
            module,
            query[:, :, part],
            key[:, :, part],
            value[:, :, part],
            None,
            segments=Segments((TrunkRun(0, length, 1),), ()),
            scaling=0.3,
        )
        assert torch.equal(packed[:, part], alone)


def test_samples_beyond_the_attention_window_are_refused_not_mistrained() -> None:
    tensors = [torch.zeros(1, 1, 5, 4)] * 3
    whole = Segments((TrunkRun(0, 5, 1),), ())
    branched = Segments((TrunkRun(0, 3, 1),), (BranchRun(3, 2, 1, 0, torch.tensor([0])),))
    for segments in (whole, branched):
        with pytest.raises(RunError, match="window 4"):
            segment_attention(
                torch.nn.Identity(), *tensors, None, segments=segments, sliding_window=4
            )
        with pytest.raises(RunError, match="soft caps"):
            segment_attention(torch.nn.Identity(), *tensors, None, segments=segments, softcap=30.0)


def test_a_dummy_trains_nothing_and_has_a_gradient_of_zero(policy) -> None:
    micro = pack([], [], [], CPU)
    logp, entropy = policy(micro)
    assert logp.tolist() == entropy.tolist() == []
    (logp * micro.weights_N).sum().backward()
    gradients = [p.grad for p in policy.parameters()]
    assert all(gradient is not None and not gradient.any() for gradient in gradients)
    policy.zero_grad()


def test_a_model_that_changes_its_logits_is_refused(tiny_dir) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_dir)
    model.config.final_logit_softcapping = 30.0
    with pytest.raises(RunError, match="final_logit_softcapping"):
        PolicyModel(model, 1.0)
