"""Share caps: nobody fills more than his part, the counter knows, and no liar holds others up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from prime_core.store.counter import RunView, StepRules, Wait, Work, expected_batches, next_step
from prime_core.store.records import Dispatch, GroupReceipt, Receipt
from prime_core.store.shares import Caps, Filled

HEX = "ab" * 32
CAPS = Caps(node=2, provider=3, providers={"a": "home", "b": "home", "c": "away", "d": "far"})
RULES = StepRules(4, 4, 1, 1, CAPS)


def dispatched(view: RunView, step: int, node: str, n: int, groups: int) -> Dispatch:
    made = Dispatch("r", step, node, n, 0, HEX, groups, 2, "default")
    view.dispatches[made.key] = made
    return made


def received(view: RunView, dispatch: Dispatch, decision: str = "accepted") -> None:
    groups = tuple(
        GroupReceipt(f"{dispatch.step}-{dispatch.node}-{dispatch.n}-{k}", "signal", "", 2)
        for k in range(dispatch.groups if decision == "accepted" else 0)
    )
    view.receipts[dispatch.key] = Receipt("r", *dispatch.key, HEX, decision, "", groups)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(0, 5)), max_size=30))
def test_rooms_hold_both_caps(added: list[tuple[str, int]]) -> None:
    filled = Filled(CAPS)
    for node, groups in added:
        filled.add(node, min(groups, max(0.0, filled.room(node))))
    assert all(count <= 2 for count in filled.nodes.values())
    assert all(count <= 3 for count in filled.providers.values())


def test_a_node_with_its_share_goes_on_with_the_next_step() -> None:
    view = RunView(newest_version=0)
    dispatched(view, 0, "a", 0, 4)
    assert expected_batches(view, RULES) == {0: 2.0}
    assert next_step(view, RULES, node="a") == Work(1, 0)
    found = next_step(view, RULES, node="b")
    assert found == Work(0, 0)
    assert isinstance(found, Work)
    assert found.groups == 1  # its provider has room for one more
    dispatched(view, 0, "c", 0, 4)
    assert next_step(view, RULES, node="d") == Work(1, 0)


def test_without_caps_nothing_changes() -> None:
    view = RunView(newest_version=0)
    dispatched(view, 0, "a", 0, 3)
    free = StepRules(4, 4, 1, 1)
    assert next_step(view, free, node="a") == next_step(view, free) == Work(0, 0)
    assert expected_batches(view, free) == {0: 3.0}


def test_a_liars_refusals_lower_the_expectation_of_the_liar_alone() -> None:
    view, free = RunView(newest_version=0), StepRules(4, 8, 1, 1)
    for n in range(4):
        received(view, dispatched(view, 0, "liar", n, 4), "rejected")
    received(view, dispatched(view, 0, "a", 0, 2))
    dispatched(view, 0, "liar", 4, 4)
    assert expected_batches(view, free)[0] == 2 + 4 / 16
    dispatched(view, 0, "a", 1, 2)
    assert expected_batches(view, free)[0] == 4 + 4 / 16


def test_a_file_without_its_predecessors_holds_nobody_up() -> None:
    view, free = RunView(newest_version=0), StepRules(2, 4, 0, 0)
    liar = dispatched(view, 0, "liar", 1, 4)
    view.submissions.add(liar.key)
    assert next_step(view, free, nodes={"a"}) == Work(0, 0)
    view.submissions.add((0, "liar", 0))
    assert isinstance(next_step(view, free, nodes={"a"}), Wait)
