"""One completion with its verdict, as it goes from where it was judged into journal and report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from prime_core.api.types import Message, Score
from prime_core.hosting import wire


@dataclass(frozen=True, slots=True)
class Judged:
    """One judged completion.

    Attributes:
        index, task: of the task; its id.
        sample: which completion of that task, from 0.
        score: the verdict.
        text: the completion, where it was generated here; "" where it stands in a file of others.
        messages: all turns, of environments with several; else empty.
        finish_reason, tokens, prompt_tokens, cost: as far as they are known, else "stop" and zeros.
        id, row: of the row in a file of completions; "" and -1 elsewhere.
    """

    index: int
    task: str
    sample: int
    score: Score
    text: str = ""
    messages: tuple[Message, ...] = ()
    finish_reason: str = "stop"
    tokens: int = 0
    prompt_tokens: int = 0
    cost: float = 0.0
    id: str = ""
    row: int = -1

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; fields at their defaults are left out."""
        found: dict[str, Any] = {
            "index": self.index,
            "task": self.task,
            "sample": self.sample,
            "score": wire.score_json(self.score),
        }
        for name, default in _DEFAULTS.items():
            value = getattr(self, name)
            if value != default:
                found[name] = value
        if self.messages:
            found["messages"] = [wire.message_json(message) for message in self.messages]
        return found

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> Judged:
        """What `to_json` wrote.

        Raises:
            FormatError, KeyError: it isn't that.
        """
        return cls(
            index=found["index"],
            task=found["task"],
            sample=found["sample"],
            score=wire.read_score(found["score"]),
            messages=wire.read_messages(found.get("messages", ()), "messages"),
            **{name: found.get(name, default) for name, default in _DEFAULTS.items()},
        )


_DEFAULTS: dict[str, Any] = {
    "text": "",
    "finish_reason": "stop",
    "tokens": 0,
    "prompt_tokens": 0,
    "cost": 0.0,
    "id": "",
    "row": -1,
}
