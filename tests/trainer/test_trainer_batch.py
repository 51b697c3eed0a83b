from __future__ import annotations

import logging

import pytest
from trainer_runs import close_step, make_run

from prime_core.api.errors import IntegrityError
from prime_core.config.sections import RunConfig
from prime_core.signing import Signer
from prime_core.store import policy as policies
from prime_core.store.layout import closed_path
from prime_core.store.objects import open_store
from prime_core.store.records import Closed
from prime_core.trainer import batch
from prime_core.trainer.advantages import GroupNorm


@pytest.fixture(scope="module")
def config(tiny_dir, tmp_path_factory) -> RunConfig:
    """A run whose step 0 is closed on version 0."""
    config = make_run(tmp_path_factory.mktemp("batch") / "run", tiny_dir)
    signer = Signer.load(config.run.dir / "keys" / "trainer.key")
    policies.write_policy(
        open_store(config), 0, None, "test-run", tiny_dir / "model.safetensors", signer
    )
    close_step(config, 0, unscored=True)
    return config


def closed(config: RunConfig, **changes: object) -> Closed:
    found = Closed.from_json(open_store(config).get(closed_path(0)))
    return Closed(**{**vars(found), **changes})


def load(config: RunConfig, record: Closed) -> list[batch.Group]:
    return batch.load_groups(open_store(config), record, config, GroupNorm())


def test_the_batch_is_in_closed_order_with_advantages_of_its_own_rewards(config) -> None:
    record = closed(config)
    backwards = closed(config, groups=record.groups[::-1])
    groups = load(config, record)
    assert [one.id for one in groups] == [one.group_id for one in record.groups]
    assert [one.id for one in load(config, backwards)] == [one.id for one in groups][::-1]
    for group in groups:
        rewards = [row.reward for row in group.rows if row.reward is not None]
        assert len(group.rows) == len(rewards) + 1
        found = [one.advantage for one in group.rollouts]
        assert found == GroupNorm().advantages(rewards)
        for row, one in zip(group.rows[1:], group.rollouts, strict=True):
            assert one.token_ids.tolist() == row.prompt_tokens + row.completion_tokens
            assert one.token_count == row.length
            assert one.engine_logprobs[one.trained].tolist() == row.completion_logprobs


def test_bytes_with_another_hash_are_never_read(config) -> None:
    record = closed(config)
    forged = tuple(type(g)(g.group_id, g.path, "0" * 64) for g in record.groups)
    with pytest.raises(IntegrityError, match="SHA-256"):
        load(config, closed(config, groups=forged))


def test_a_batch_of_another_run_or_with_a_group_that_is_not_there_is_refused(config) -> None:
    with pytest.raises(IntegrityError, match="of run other"):
        load(config, closed(config, run_id="other"))
    first = closed(config).groups[0]
    ghost = type(first)("0-worker-0-0-77", first.path, first.sha256)
    with pytest.raises(IntegrityError, match="0-worker-0-0-77"):
        load(config, closed(config, groups=(ghost,)))


def test_a_lag_above_max_and_another_temperature_are_refused(config) -> None:
    with pytest.raises(IntegrityError, match=r"lags by 2, async\.max is 1"):
        load(config, closed(config, step=2))
    hot = config.model_copy(
        update={"engine": config.engine.model_copy(update={"temperature": 0.6})}
    )
    with pytest.raises(IntegrityError, match="temperature"):
        load(hot, closed(config))


def test_a_trainer_that_waits_says_for_whom_and_since_when(
    config, tmp_path, monkeypatch, caplog
) -> None:
    clock, told = [1000.0], []
    monkeypatch.setattr(batch.time, "time", lambda: clock[0])
    store = open_store(config)
    asked = iter([False] * 40)
    monkeypatch.setattr(store, "exists", lambda path: next(asked, True))

    def sleep(_: float) -> None:
        clock[0] += 2.0

    with caplog.at_level(logging.WARNING):
        batch.wait_closed(store, 0, 4, told.append, sleep=sleep)
    assert len(told) == 2
    assert "intake" in told[0]
    assert "4 accepted groups" in told[0]
    assert told[1] == ""
    messages = [one.getMessage() for one in caplog.records]
    assert len(messages) == 2
    assert "waits since" in messages[0]
    assert "(32 s) for the intake to write steps/000000/closed.json" in messages[0]


def test_a_step_that_is_closed_already_is_not_waited_for(config) -> None:
    def never(_: object) -> None:
        raise AssertionError

    assert batch.wait_closed(open_store(config), 0, 4, never, sleep=never).step == 0
