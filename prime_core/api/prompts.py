"""Where an instruction goes in a prompt: one rule for every environment.

Called by the `render` of environments; the given messages are never changed, a new tuple is made.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_core.api.types import Instruction, Message


def with_instruction(
    messages: Sequence[Message], instruction: Instruction | None
) -> tuple[Message, ...]:
    """Append an instruction's text to the message that its place names.

    "user" is the last user message, "system" the first system message; a message that doesn't
    exist is made (the system message first, the user message last). None changes nothing.
    """
    if instruction is None:
        return tuple(messages)
    if instruction.place == "system":
        places = [i for i, message in enumerate(messages) if message.role == "system"][:1]
    else:
        places = [i for i, message in enumerate(messages) if message.role == "user"][-1:]
    if not places:
        made = Message(instruction.place, instruction.text)
        return (made, *messages) if instruction.place == "system" else (*messages, made)
    old = messages[places[0]]
    content = f"{old.content}\n\n{instruction.text}" if old.content else instruction.text
    return (*messages[: places[0]], Message(old.role, content), *messages[places[0] + 1 :])
