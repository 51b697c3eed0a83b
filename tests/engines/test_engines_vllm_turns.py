"""Rollouts of several turns with a tool through real vLLM: one committed sequence each."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from prime_env_calculator import environment as calculator
from prime_env_calculator.params import CalculatorParams

from prime_core.api import Message, PolicyFiles, PrefillRequest, Reply, TurnState
from prime_core.engines.chat import ChatFormat
from prime_core.engines.model_files import load_tokenizer
from prime_core.engines.transformers.engine import TransformersEngine
from prime_core.engines.turns import Player, Rollout, State
from prime_core.engines.vllm.engine import VllmEngine
from prime_core.toploc import Thresholds, verify_proofs

pytestmark = pytest.mark.vllm


class Calculator:
    """The calculator environment, asked on the model's behalf: a tiny model can't call it.

    The model's own words stay in the rollout; what the environment sees is a call.
    """

    def __init__(self) -> None:
        self.environment = calculator.CalculatorEnvironment(CalculatorParams(limit=8))

    async def reply(self, states: Sequence[State]) -> list[Reply | None]:
        tasks, found = self.environment.tasks(), []
        for task, prompt, messages, turn in states:
            call = Message("assistant", f"<calc>{turn}7*{task + 3}</calc>")
            state = TurnState(tasks[task], prompt, (*messages[:-1], call), turn)
            found.append(self.environment.reply(state) if turn < 3 else None)
        return found


def play(engine: Any, chat: ChatFormat) -> list[Rollout]:
    asking = Calculator()
    rollouts = []
    for index, task in enumerate(asking.environment.tasks()[:6]):
        prompt = (Message("user", task.prompt[0].content[:40]),)
        tokens = chat.prompt_tokens(prompt)
        rollouts.append(Rollout(str(index), "g", "calc", index, prompt, tokens, 40 + index))
    player = Player(engine, chat, {"calc": asking}, 0.7, 240, 900, 8, commit=True)
    asyncio.run(player.play(rollouts, lambda rollout: None))
    return rollouts


def test_turns_with_a_tool_are_one_committed_sequence(
    vllm_engine: VllmEngine,
    vllm_reference: TransformersEngine,
    vllm_policies: dict[str, PolicyFiles],
) -> None:
    """Both engines play the same, though the tokenizer would write the model's words otherwise."""
    tokenizer = load_tokenizer(vllm_policies["first"].model_dir)
    chat = ChatFormat(tokenizer)
    ours, theirs = play(vllm_engine, chat), play(vllm_reference, chat)
    several = [rollout for rollout in ours if len(rollout.turn_ends) == 3]
    assert several, "no rollout has three turns: choose other seeds"
    retokenised = 0
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.tokens, mine.mask, mine.turn_ends) == (
            other.tokens,
            other.mask,
            other.turn_ends,
        )
        said = mine.tokens[: mine.turn_ends[0]]
        retokenised += tokenizer.encode(tokenizer.decode(said), add_special_tokens=False) != said
    assert retokenised
    for rollout in several:
        assert "<result>" in "".join(m.content for m in rollout.messages if m.role == "user")
        assert not all(rollout.mask)
        asked = PrefillRequest(
            (*rollout.prompt_tokens, *rollout.tokens), len(rollout.prompt_tokens), 0.7
        )
        own = np.array(rollout.mask)
        for engine in (vllm_engine, vllm_reference):
            prefill = engine.prefill([asked])[0]
            rows = torch.from_numpy(np.array(prefill.hidden_states[own])).to(torch.bfloat16)
            verdicts = verify_proofs(rows, rollout.proofs(), Thresholds())
            assert verdicts
            assert all(verdict.accepted for verdict in verdicts)
            np.testing.assert_allclose(
                prefill.logprobs[own], np.array(rollout.logprobs)[own], atol=1e-4
            )
