"""The values of the api as JSON and back, for the pipe between a pool and its hosts.

`*_json` functions write what a plugin or the engine holds, `read_*` functions read strictly.
Invariant: a value that reads is whole, typed and finite; anything else is a `FormatError`.
"""

from __future__ import annotations

from typing import Any, cast, get_args

from prime_core.api.errors import FormatError
from prime_core.api.types import (
    Completion,
    EnvironmentInfo,
    FinishReason,
    GoldReport,
    Instruction,
    Message,
    Reply,
    Reward,
    Role,
    Score,
    ScoredRollout,
    Task,
)
from prime_core.hosting.values import fields, mapping, number, sequence, text, whole

ROLES = get_args(Role)
FINISH_REASONS = get_args(FinishReason)


def message_json(message: Message) -> dict[str, Any]:
    """A chat message."""
    return {"role": message.role, "content": message.content}


def read_message(value: object, what: str) -> Message:
    """A chat message."""
    role, content = fields(value, what, ("role", "content"))
    if role not in ROLES:
        raise FormatError(f"{what}.role is {role!r}, not one of {ROLES}")
    return Message(role=role, content=text(content, f"{what}.content"))


def messages_json(messages: object, what: str) -> list[dict[str, Any]]:
    """Messages that a plugin returned, checked one by one."""

    def one(value: object, where: str) -> dict[str, Any]:
        if not isinstance(value, Message):
            raise FormatError(f"{where} is a {type(value).__name__}, not a Message")
        return message_json(value)

    return list(sequence(messages, what, one))


def read_messages(value: object, what: str) -> tuple[Message, ...]:
    """Messages in order."""
    return sequence(value, what, read_message)


def task_json(task: object) -> dict[str, Any]:
    """A task that an environment returned."""
    if not isinstance(task, Task):
        raise FormatError(f"a task is a {type(task).__name__}, not a Task")
    return {
        "id": task.id,
        "prompt": messages_json(task.prompt, "task.prompt"),
        "gold": task.gold,
        "verification": mapping(task.verification, "task.verification"),
        "metadata": mapping(task.metadata, "task.metadata"),
        "task_type": task.task_type,
        "source": task.source,
    }


def read_task(value: object, what: str = "task") -> Task:
    """A task."""
    names = ("id", "prompt", "gold", "verification", "metadata", "task_type", "source")
    task_id, prompt, gold, verification, metadata, task_type, source = fields(value, what, names)
    return Task(
        id=text(task_id, f"{what}.id"),
        prompt=read_messages(prompt, f"{what}.prompt"),
        gold=None if gold is None else text(gold, f"{what}.gold"),
        verification=mapping(verification, f"{what}.verification"),
        metadata=mapping(metadata, f"{what}.metadata"),
        task_type=text(task_type, f"{what}.task_type"),
        source=text(source, f"{what}.source"),
    )


def completion_json(completion: Completion) -> dict[str, Any]:
    """What the model said."""
    return {
        "text": completion.text,
        "messages": [message_json(message) for message in completion.messages],
        "finish_reason": completion.finish_reason,
        "token_count": completion.token_count,
    }


def read_completion(value: object, what: str = "completion") -> Completion:
    """What the model said."""
    names = ("text", "messages", "finish_reason", "token_count")
    said, messages, finish_reason, token_count = fields(value, what, names)
    if finish_reason not in FINISH_REASONS:
        raise FormatError(f"{what}.finish_reason is {finish_reason!r}")
    return Completion(
        text=text(said, f"{what}.text"),
        messages=read_messages(messages, f"{what}.messages"),
        finish_reason=finish_reason,
        token_count=whole(token_count, f"{what}.token_count"),
    )


def _numbers(value: object, what: str) -> dict[str, float]:
    return {key: number(item, f"{what}.{key}") for key, item in mapping(value, what).items()}


def score_json(score: object) -> dict[str, Any]:
    """A score that a verifier returned."""
    if not isinstance(score, Score):
        raise FormatError(f"a verifier returned a {type(score).__name__}, not a Score")
    return {
        "value": None if score.value is None else number(score.value, "score.value"),
        "status": score.status,
        "parts": _numbers(score.parts, "score.parts"),
        "evidence": mapping(score.evidence, "score.evidence"),
    }


def read_score(value: object, score_range: tuple[float, float] | None = None) -> Score:
    """A score; its value within the environment's declared range where one is given."""
    found, status, parts, evidence = fields(
        value, "score", ("value", "status", "parts", "evidence")
    )
    try:
        score = Score(
            None if found is None else number(found, "score.value"),
            cast("Any", text(status, "score.status")),
            _numbers(parts, "score.parts"),
            mapping(evidence, "score.evidence"),
        )
    except ValueError as error:
        raise FormatError(str(error)) from error
    if score_range is not None and score.value is not None:
        low, high = score_range
        if not low <= score.value <= high:
            raise FormatError(f"score.value {score.value} is outside the range [{low}, {high}]")
        if score.status == "invalid_output" and score.value != low:
            raise FormatError(f"a score of invalid_output is worth {low}, not {score.value}")
    return score


def gold_report_json(report: object) -> dict[str, Any]:
    """What a verifier's `check_gold` returned: a `GoldReport`, or what has its three members."""
    names = ("ok", "type", "reason")
    lacking = [name for name in names if not hasattr(report, name)]
    if lacking:
        kind = type(report).__name__
        raise FormatError(f"check_gold returned a {kind} without {', '.join(lacking)}")
    ok, gold_type, reason = (getattr(report, name) for name in names)
    if not isinstance(ok, bool):
        raise FormatError(f"check_gold's ok is a {type(ok).__name__}, not a bool")
    return {
        "ok": ok,
        "type": text(gold_type, "gold report.type"),
        "reason": text(reason, "gold report.reason"),
    }


def read_gold_report(value: object, what: str = "gold report") -> GoldReport:
    """Whether a gold answer can be judged by."""
    ok, gold_type, reason = fields(value, what, ("ok", "type", "reason"))
    if not isinstance(ok, bool):
        raise FormatError(f"{what}.ok is a {type(ok).__name__}, not a bool")
    return GoldReport(ok, text(gold_type, f"{what}.type"), text(reason, f"{what}.reason"))


def rollout_json(rollout: ScoredRollout) -> dict[str, Any]:
    """A completion and its score."""
    return {
        "completion": completion_json(rollout.completion),
        "score": score_json(rollout.score),
    }


def read_rollout(value: object, what: str = "rollout") -> ScoredRollout:
    """A completion and its score."""
    completion, score = fields(value, what, ("completion", "score"))
    return ScoredRollout(read_completion(completion, f"{what}.completion"), read_score(score))


def reward_json(reward: object) -> dict[str, Any]:
    """A reward that a reward function returned."""
    if not isinstance(reward, Reward):
        raise FormatError(f"a reward function returned a {type(reward).__name__}, not a Reward")
    return {
        "total": number(reward.total, "reward.total"),
        "parts": _numbers(reward.parts, "reward.parts"),
    }


def read_reward(value: object, what: str) -> Reward:
    """A reward, finite."""
    total, parts = fields(value, what, ("total", "parts"))
    return Reward(number(total, f"{what}.total"), _numbers(parts, f"{what}.parts"))


def instruction_json(instruction: Instruction | None) -> dict[str, Any] | None:
    """The text of a length budget."""
    if instruction is None:
        return None
    return {"text": instruction.text, "place": instruction.place}


def read_instruction(value: object, what: str = "instruction") -> Instruction | None:
    """The text of a length budget, or None."""
    if value is None:
        return None
    said, place = fields(value, what, ("text", "place"))
    if place not in ("system", "user"):
        raise FormatError(f"{what}.place is {place!r}, neither system nor user")
    return Instruction(text(said, f"{what}.text"), place)


def reply_json(reply: object) -> dict[str, Any] | None:
    """An environment's answer, or None where the rollout ends."""
    if reply is None:
        return None
    if not isinstance(reply, Reply):
        raise FormatError(f"an environment replied with a {type(reply).__name__}, not a Reply")
    return {"messages": messages_json(reply.messages, "reply.messages")}


def read_reply(value: object, what: str = "reply") -> Reply | None:
    """An environment's answer, or None."""
    if value is None:
        return None
    (messages,) = fields(value, what, ("messages",))
    return Reply(read_messages(messages, f"{what}.messages"))


def info_json(info: object) -> dict[str, Any]:
    """What an environment declares about itself."""
    if not isinstance(info, EnvironmentInfo):
        raise FormatError(f"environment.info is a {type(info).__name__}, not an EnvironmentInfo")
    return {
        "name": info.name,
        "version": info.version,
        "dataset_digest": info.dataset_digest,
        "licence": info.licence,
        "score_range": [number(edge, "info.score_range") for edge in info.score_range],
        "chance_level": number(info.chance_level, "info.chance_level"),
        "deterministic": bool(info.deterministic),
        "needs": list(info.needs),
    }


def read_info(value: object, what: str = "info") -> EnvironmentInfo:
    """What an environment declares about itself; its range has to be one."""
    names = ("name", "version", "dataset_digest", "licence", "score_range", "chance_level")
    name, version, digest, licence, edges, chance, deterministic, needs = fields(
        value, what, (*names, "deterministic", "needs")
    )
    score_range = sequence(edges, f"{what}.score_range", number)
    if len(score_range) != 2 or score_range[0] >= score_range[1]:
        raise FormatError(f"{what}.score_range is {list(score_range)}, not [lowest, highest]")
    return EnvironmentInfo(
        name=text(name, f"{what}.name"),
        version=text(version, f"{what}.version"),
        dataset_digest=text(digest, f"{what}.dataset_digest"),
        licence=text(licence, f"{what}.licence"),
        score_range=(score_range[0], score_range[1]),
        chance_level=number(chance, f"{what}.chance_level"),
        deterministic=deterministic is True,
        needs=sequence(needs, f"{what}.needs", text),
    )
