"""Every hook is documented with its exact signature, and every hook has a test here."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from prime_core.api import hookspecs
from prime_core.hub.kinds import KINDS, NOTIFICATIONS

ROOT = Path(__file__).parents[2]
HOOKS = {name: hook for name, hook in vars(hookspecs).items() if name.startswith("prime_")}


def signature(name: str) -> str:
    """As the reference writes it; annotations are strings in the module, hence the quotes."""
    return name + str(inspect.signature(HOOKS[name])).replace("'", "")


def test_the_table_of_kinds_knows_every_hook():
    assert set(HOOKS) == {kind.hook for kind in KINDS.values() if kind.hook} | set(NOTIFICATIONS)


@pytest.mark.parametrize("name", HOOKS)
def test_the_reference_shows_each_signature(name):
    text = (ROOT / "docs/reference/hooks.md").read_text()
    assert f"\n{signature(name)}\n" in text
    assert f"### `{name}`" in text


def test_the_reference_shows_no_other_hook():
    text = (ROOT / "docs/reference/hooks.md").read_text()
    assert set(re.findall(r"^### `(prime_\w+)`", text, re.MULTILINE)) == set(HOOKS)


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_has_a_test(name):
    mine = Path(__file__).name
    tests = [path for path in Path(__file__).parent.glob("test_*.py") if path.name != mine]
    assert any(name in path.read_text() for path in tests), f"no test in tests/hub uses {name}"


@pytest.mark.parametrize("name", HOOKS)
def test_every_hook_says_what_it_is_for(name):
    assert inspect.getdoc(HOOKS[name])
