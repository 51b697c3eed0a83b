"""Conversations are rebuilt from tokens: honest ones whole, edited ones with what differs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from types import SimpleNamespace

import pytest

from prime_core.api import HostError, Message, Reply, Reward, Score
from prime_core.engines.planning import PlannedGroup
from prime_core.store.schema import RolloutRow
from prime_core.testing.toy_submission import toy_submission
from prime_core.validation.conversation import Conversation, Endings, rebuild
from prime_core.validation.rescoring import Rescorer

PROMPT = (Message("user", "count"),)
ENDINGS = Endings(frozenset({3, 4, 5}), max_prompt_tokens=16, max_turns=4)  # d, e and f end a turn


class Chat:
    """A token is a letter; a reply is framed by 0 and 1."""

    def text(self, tokens) -> str:
        return "".join(chr(97 + token) for token in tokens)

    def reply_tokens(self, messages, reply, last_token) -> tuple[int, ...]:
        return (0, *(ord(char) - 97 for m in reply for char in m.content), 1)


@dataclass
class Pool:
    """Answers the first turn with "c", and ends after the second; scores by the last letter."""

    multi_turn: bool = True
    needs: tuple[str, ...] = ()
    broken: bool = False
    evidence: dict | None = None
    deterministic: bool = True

    @property
    def description(self):
        return SimpleNamespace(
            multi_turn=self.multi_turn,
            info=SimpleNamespace(needs=self.needs, deterministic=self.deterministic),
        )

    async def reply(self, states):
        if self.broken:
            raise HostError("it crashed", kind="crash")
        return [Reply((Message("user", "c"),)) if turn == 1 else None for _, _, _, turn in states]

    async def score(self, items):
        return [
            Score(float(said.text.endswith("e")), evidence=self.evidence or {}) for _, said in items
        ]

    async def reward(self, task, rollouts, length_budget, step):
        return [Reward(one.score.value + 0.5, {"task": one.score.value}) for one in rollouts]


def row(tokens=(3, 0, 2, 1, 4), mask=(1, 0, 0, 0, 1), ends=(1, 5), **changes) -> RolloutRow:
    """ "d", the environment's "c" between its frames, "e"."""
    base = toy_submission()[0].rows[0]
    assert isinstance(base, RolloutRow)
    return replace(
        base,
        completion_tokens=list(tokens),
        completion_mask=[bool(own) for own in mask],
        completion_logprobs=[0.0] * len(tokens),
        turn_ends=list(ends),
        **{"finish_reason": "stop", "score": 1.0, "reward": 1.5, **changes},
    )


def rebuilt(made: RolloutRow, pool: Pool | None = None, max_turns: int = 4) -> Conversation:
    one, endings = Conversation(made, 0, PROMPT), replace(ENDINGS, max_turns=max_turns)
    asyncio.run(rebuild([one], Chat(), pool or Pool(), endings))  # type: ignore[arg-type]
    return one


def test_an_honest_conversation_is_rebuilt_whole() -> None:
    one = rebuilt(row())
    assert (one.mismatch, one.failure) == ("", "")
    assert [(m.role, m.content) for m in one.messages] == [
        ("assistant", "d"),
        ("user", "c"),
        ("assistant", "e"),
    ]
    assert one.completion().text == "e"
    assert one.completion().token_count == 2


@pytest.mark.parametrize(
    ("made", "pool", "mismatch"),
    [
        (row(tokens=(3, 0, 5, 1, 4)), Pool(), "aren't its own"),
        (row(tokens=(3, 4), mask=(1, 1), ends=(2,)), Pool(), "would have answered"),
        (
            row(
                tokens=(3, 0, 2, 1, 4, 0, 2, 1, 4), mask=(1, 0, 0, 0, 1, 0, 0, 0, 1), ends=(1, 5, 9)
            ),
            Pool(),
            "goes on after turn 1",
        ),
        (row(), Pool(multi_turn=False), "several turns"),
    ],
)
def test_an_edited_conversation_says_how_it_differs(made, pool, mismatch) -> None:
    assert mismatch in rebuilt(made, pool).mismatch


def test_a_rollout_at_its_limit_was_never_shown_to_the_environment() -> None:
    cut = row(tokens=(3, 9), mask=(1, 1), ends=(2,), finish_reason="length", max_tokens=2)
    assert rebuilt(cut).goes_on
    assert rebuilt(cut, Pool(multi_turn=False)).goes_on
    whole = replace(cut, max_tokens=3, prompt_tokens=list(range(17)))  # 16 + 3 tokens in all
    assert rebuilt(whole).goes_on


@pytest.mark.parametrize("reason", ["turns", "stop", "length"])
@pytest.mark.parametrize("multi_turn", [True, False])
def test_a_rollout_that_is_cut_off_is_none_whatever_it_says(reason: str, multi_turn: bool) -> None:
    """A last turn without an end token, with room to go on: alone, and at the last turn of all."""
    pool = Pool(multi_turn=multi_turn)
    cut = row(tokens=(3, 9), mask=(1, 1), ends=(2,), finish_reason=reason)
    assert "is cut off" in rebuilt(cut, pool).mismatch
    assert "is cut off" in rebuilt(cut, pool, max_turns=1).mismatch
    second = row(tokens=(3, 0, 2, 1, 9), finish_reason=reason)
    if multi_turn:
        assert "is cut off" in rebuilt(second, pool, max_turns=2).mismatch


def test_turns_is_the_end_where_the_environment_answers_the_last_turn() -> None:
    one = {"tokens": (3,), "mask": (1,), "ends": (1,), "finish_reason": "turns"}
    assert rebuilt(row(**one), max_turns=1).goes_on
    assert "ends where" in rebuilt(row(**one), max_turns=2).mismatch
    assert "ends by stop" in rebuilt(row(**one), Pool(multi_turn=False), max_turns=1).mismatch
    # the environment has nothing to say after its second turn
    assert "ends by stop" in rebuilt(row(finish_reason="turns"), max_turns=2).mismatch
    assert "ends by turns" in rebuilt(row(**{**one, "finish_reason": "stop"}), max_turns=1).mismatch


def test_no_turn_follows_one_that_nothing_ended() -> None:
    on = row(tokens=(9, 0, 2, 1, 4))
    assert "which no end token ends" in rebuilt(on).mismatch


def test_an_ending_is_the_one_that_playing_gives() -> None:
    one = {"tokens": (3,), "mask": (1,), "ends": (1,)}
    alone = Pool(multi_turn=False)
    assert rebuilt(row(**one), alone).goes_on
    assert "says length" in rebuilt(row(**one, finish_reason="length"), alone).mismatch
    assert "says turns" in rebuilt(row(finish_reason="turns")).mismatch
    # the answer has no room: a rollout of 2 + 16 tokens in all, 15 of them its prompt
    narrow = {"max_tokens": 2, "prompt_tokens": list(range(15))}
    assert rebuilt(row(**one, **narrow, finish_reason="length")).goes_on
    assert "ends by length" in rebuilt(row(**one, **narrow)).mismatch


def test_an_environment_that_failed_on_either_side_accuses_nobody() -> None:
    failed = row(tokens=(3,), mask=(1,), ends=(1,), score_status="error", score=None, reward=None)
    assert rebuilt(failed).goes_on
    assert "crashed" in rebuilt(row(), Pool(broken=True)).failure


def rescored(pool: Pool, *rows: RolloutRow):
    group = PlannedGroup(
        "3-node-0-0", 0, "toy", 0, "t0", tuple(range(len(rows))), None, PROMPT, (5,)
    )
    rescorer = Rescorer({"toy": pool}, Chat(), ENDINGS)  # type: ignore[arg-type,dict-item]
    return asyncio.run(rescorer.rescore(group, rows, 3))


def test_scores_and_rewards_of_a_group() -> None:
    empty = row(tokens=(), mask=(), ends=(), score_status="error", score=None, reward=None)
    good, bad, none = rescored(Pool(), row(), row(tokens=(3, 0, 2, 1, 5)), empty)
    assert (good.score.value, good.reward, good.parts) == (1.0, 1.5, {"task": 1.0})
    assert (bad.score.value, bad.reward) == (0.0, 0.5)
    assert (none.score.status, none.reward) == ("error", None)


def test_rewards_of_the_nodes_scores_where_graders_may_differ() -> None:
    theirs = row(score=0.875), row(tokens=(3, 0, 2, 1, 5), score=0.0)
    found = rescored(Pool(deterministic=False), *theirs)
    assert [each.reward for each in found] == [1.5, 0.5]
    assert [each.claimed and each.claimed.total for each in found] == [1.375, 0.5]
    assert [each.claimed for each in rescored(Pool(), *theirs)] == [None, None]
    same = rescored(Pool(deterministic=False), row(score=1.0))
    assert [each.claimed for each in same] == [None]


def test_a_limit_that_decided_is_said() -> None:
    slow = Pool(evidence={"status": "fail", "statuses": {"ok": 1, "time_limit": 1}})
    assert rescored(slow, row())[0].limited
    assert not rescored(Pool(), row())[0].limited
    boxed = Pool(needs=("sandbox:namespaces",))
    assert rescored(boxed, row(score_status="invalid_output", score=0.0))[0].limited
    assert not rescored(boxed, row())[0].limited
