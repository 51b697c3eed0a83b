"""Where a length budget's instruction lands."""

from __future__ import annotations

from prime_core.api import Instruction, Message, with_instruction

SYSTEM, USER, MODEL = Message("system", "s"), Message("user", "u"), Message("assistant", "a")
TO_USER, TO_SYSTEM = Instruction("think", "user"), Instruction("think", "system")


def test_no_instruction_changes_nothing() -> None:
    assert with_instruction([SYSTEM, USER], None) == (SYSTEM, USER)


def test_it_is_appended_to_the_message_of_its_place() -> None:
    assert with_instruction((SYSTEM, USER), TO_USER) == (SYSTEM, Message("user", "u\n\nthink"))
    assert with_instruction((SYSTEM, USER), TO_SYSTEM) == (Message("system", "s\n\nthink"), USER)


def test_the_last_user_message_and_the_first_system_message_count() -> None:
    assert with_instruction((USER, MODEL, USER), TO_USER)[0] == USER
    assert with_instruction((USER, MODEL, USER), TO_USER)[2].content == "u\n\nthink"
    assert with_instruction((SYSTEM, USER, SYSTEM), TO_SYSTEM)[2] == SYSTEM


def test_a_missing_message_is_made() -> None:
    assert with_instruction((USER,), TO_SYSTEM) == (Message("system", "think"), USER)
    assert with_instruction((SYSTEM,), TO_USER) == (SYSTEM, Message("user", "think"))


def test_an_empty_message_gets_no_blank_lines() -> None:
    assert with_instruction((Message("system", ""), USER), TO_SYSTEM)[0].content == "think"
