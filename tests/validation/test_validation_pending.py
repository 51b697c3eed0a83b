"""Which files are judged next, and by whom: a node's in their order, each by one validator."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from prime_core.signing import Signer
from prime_core.store.counter import RunView, StepRules
from prime_core.store.records import Dispatch
from prime_core.validation.pending import Pending, rank

SIGNER = Signer(bytes(31) + b"\x01")


@given(st.sets(st.integers(0, 99), min_size=1, max_size=6), st.integers(0, 50))
def test_every_file_has_one_first_validator(numbers: set[int], n: int) -> None:
    validators = {f"0x{number:040x}" for number in numbers}
    ranks = sorted(rank(each, validators, (1, "node", n)) for each in validators)
    assert ranks == list(range(len(validators)))


RULES = StepRules(steps=10, groups_per_step=4, level=2, max_lag=2)


def view_with(*files: tuple[int, str, int], version: int = 0) -> RunView:
    view = RunView(newest_version=3)
    for key in files:
        step, node, n = key
        view.dispatches[key] = Dispatch("r", step, node, n, version, "ab" * 32, 2, 2, "default")
        view.submissions.add(key)
    return view


def pending(clock: list[float], validators: set[str] | None = None) -> Pending:
    own = SIGNER.address
    return Pending(RULES, own, validators or {own}, 60.0, 30.0, clock=lambda: clock[0])


def files(queue: Pending, view: RunView, stated=lambda key: True, loaded=None):
    return queue.files(view, judged=lambda key: False, stated=stated, loaded=loaded)


def test_oldest_steps_first_nodes_in_turn_and_the_loaded_version_before_others() -> None:
    view = view_with((2, "a", 0), (2, "a", 1), (2, "b", 0), (1, "b", 0))
    assert files(pending([0.0]), view) == [(1, "b", 0), (2, "a", 0), (2, "b", 0)]
    view.receipts[2, "a", 0] = None
    assert files(pending([0.0]), view) == [(1, "b", 0), (2, "b", 0), (2, "a", 1)]
    key = (2, "c", 0)
    view.dispatches[key] = Dispatch("r", *key, 1, "ab" * 32, 2, 2, "default")
    view.submissions.add(key)
    assert files(pending([0.0]), view, loaded=1)[1] == key


def test_a_file_waits_for_its_predecessors_and_its_statement() -> None:
    view, clock = view_with((1, "a", 1)), [0.0]
    queue = pending(clock)
    assert files(queue, view) == []
    view = view_with((1, "a", 0), (1, "a", 1))
    assert files(queue, view, stated=lambda key: key[2] == 1) == []
    clock[0] = 31.0
    assert files(queue, view, stated=lambda key: False) == [(1, "a", 0)]
    view.receipts[1, "a", 0] = None
    assert files(queue, view, stated=lambda key: False) == [(1, "a", 1)]


def test_a_nodes_files_of_a_step_are_judged_in_their_order() -> None:
    """Whatever version is loaded: what becomes of one decides how those after it are looked at."""
    view, queue, done, stuck = view_with((2, "a", 1), (2, "b", 0)), pending([0.0]), set(), set()
    first, second = (2, "a", 0), (2, "a", 1)
    view.dispatches[first] = Dispatch("r", *first, 1, "ab" * 32, 2, 2, "default")

    def ready():
        found = queue.files(view, done.__contains__, lambda key: True, 0, stuck.__contains__)
        return [key for key in found if key[1] == "a"]

    assert ready() == []  # it hasn't come
    view.submissions.add(first)
    assert ready() == [first]
    done.add(first)
    assert ready() == [second]
    done.clear()
    stuck.add(first)  # put off for long: it comes again, and nobody waits for it
    assert ready() == [second, first]
    stuck.clear()
    del view.dispatches[first]
    assert ready() == []  # somebody may yet announce it, until the intake refuses it
    view.receipts[first] = None
    assert ready() == [second]


def test_a_predecessor_that_is_late_holds_nobody_up() -> None:
    view = view_with((2, "a", 1), version=1)
    late = (2, "a", 0)
    view.submissions.add(late)
    view.dispatches[late] = Dispatch("r", *late, 0, "ab" * 32, 2, 2, "default")
    queue = pending([0.0])
    queue.rules = replace(RULES, level=1, max_lag=3)
    assert files(queue, view) == [late]
    view.first_open = 4  # which version 0 may not serve any more, and version 1 may
    assert files(queue, view) == [(2, "a", 1)]


def test_a_late_file_gets_no_verdict() -> None:
    view = view_with((1, "a", 0))
    view.first_open = 3
    assert files(pending([0.0]), view) == []


def test_another_validator_takes_over_after_its_wait() -> None:
    other = "0x" + "22" * 20
    validators = {SIGNER.address, other}
    view = view_with(*((1, f"a{n}", 0) for n in range(8)))
    clock = [0.0]
    queue = pending(clock, validators)
    mine = files(queue, view)
    assert mine == [
        key for key in sorted(view.submissions) if rank(SIGNER.address, validators, key) == 0
    ]
    assert 0 < len(mine) < 8
    clock[0] = 60.0
    assert len(files(queue, view)) == 8
