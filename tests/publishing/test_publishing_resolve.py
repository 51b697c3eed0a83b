"""Which release of an index is chosen: what fits, from whom one trusts, and no step back."""

from __future__ import annotations

import pytest
from publishing_support import ALICE, MALLORY, add, overwrite, upload

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.publishing.index import Index
from prime_core.publishing.installed import Installed
from prime_core.publishing.resolve import Policy, choose, parse, resolve
from prime_core.publishing.source import open_source

NAME = "prime-env-sums"
TRUST = Policy(frozenset({ALICE.address}))


@pytest.fixture
def index(tmp_path) -> Index:
    made = Index(str(tmp_path / "index"))
    add(made, NAME, "1.0", level="bronze")
    return made


def chosen(index: Index, text: str, policy: Policy = TRUST, there: dict | None = None) -> list[str]:
    found = resolve(open_source(index.store.url), parse(text), policy, there or {})
    return [f"{name} {release.record.value.version}" for name, release in found.items()]


def test_the_newest_that_fits_is_chosen(index):
    for version in ("1.5", "2.0rc1", "0.9"):
        add(index, NAME, version)
    assert chosen(index, NAME) == [f"{NAME} 1.5"]
    assert chosen(index, f"{NAME}<1.5") == [f"{NAME} 1.0"]
    assert chosen(index, f"{NAME}==2.0rc1") == [f"{NAME} 2.0rc1"]
    pre = Policy(TRUST.publishers, prereleases=True)
    assert chosen(index, NAME, pre) == [f"{NAME} 2.0rc1"]
    index.yank(NAME, "1.5", "bad", ALICE)
    assert chosen(index, NAME) == [f"{NAME} 1.0"]
    assert chosen(index, f"{NAME}==1.5") == [f"{NAME} 1.5"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("prime-env-sum", "it holds prime-env-sums"),
        (f"{NAME}==7", "it holds 1"),
        (f"{NAME}>=7", "no version fits"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(index, text, said):
    with pytest.raises(StoreError, match=said):
        chosen(index, text)


@pytest.mark.parametrize(
    "text", ["", "a b", "../x", "x @ file:///etc/passwd", "x; python_version>'3'"]
)
def test_what_is_no_name_is_refused(text):
    with pytest.raises(FormatError):
        parse(text)


def test_another_publisher_is_refused_by_address(index):
    with pytest.raises(IntegrityError, match=f"signed by {ALICE.address}, whom you haven't named"):
        chosen(index, NAME, Policy(frozenset({MALLORY.address})))


def test_a_lower_level_is_refused(index):
    with pytest.raises(IntegrityError, match="at level bronze, you demand silver"):
        chosen(index, NAME, Policy(TRUST.publishers, "silver"))
    add(index, NAME, "0.9", level="gold")
    assert chosen(index, NAME, Policy(TRUST.publishers, "silver")) == [f"{NAME} 0.9"]


def test_a_version_of_somebody_who_broke_in_is_never_chosen(index):
    index.put(upload(NAME, "9.0", MALLORY, level="gold"))
    index.build()
    assert chosen(index, NAME) == [f"{NAME} 1.0"]


def test_a_broken_newest_version_does_not_give_way_to_an_older_one(index, tmp_path):
    add(index, NAME, "2.0")
    overwrite(tmp_path / "index", f"records/{NAME}/2/record.json", b"{}")
    with pytest.raises(IntegrityError):
        chosen(index, NAME)
    assert chosen(index, f"{NAME}==1.0") == [f"{NAME} 1.0"]


def test_a_raised_level_in_a_record_breaks_its_signature(index, tmp_path):
    path = f"records/{NAME}/1/record.json"
    raw = index.store.get(path).replace(b'"level":"bronze"', b'"level":"gold"')
    overwrite(tmp_path / "index", path, raw)
    with pytest.raises(IntegrityError, match="wasn't signed by"):
        chosen(index, NAME, Policy(TRUST.publishers, "gold"))


def test_an_index_that_was_rolled_back_is_noticed(index, tmp_path):
    there = Installed(NAME, "2.0", tmp_path)
    with pytest.raises(IntegrityError, match="rolled back"):
        chosen(index, NAME, there={NAME: there})
    assert chosen(index, f"{NAME}==1.0", there={NAME: there}) == [f"{NAME} 1.0"]


def test_requirements_that_the_index_holds_are_verified_too(index):
    add(index, "prime-env-base", requires=("numpy>=2", "prime-env-sums<2; extra == 'never'"))
    add(index, "prime-env-top", requires=("prime-env-base>=1", f"{NAME}>=1"))
    assert sorted(chosen(index, "prime-env-top")) == [
        "prime-env-base 1.0",
        f"{NAME} 1.0",
        "prime-env-top 1.0",
    ]
    index.add(upload("prime-env-foreign", "1.0", MALLORY), MALLORY)
    add(index, "prime-env-top", "2.0", requires=("prime-env-foreign",))
    with pytest.raises(IntegrityError, match=r"prime-env-foreign 1\.0 is signed by"):
        chosen(index, "prime-env-top")


def test_requirements_of_an_extra_are_verified_whoever_asks_for_it(index):
    add(index, "prime-env-more")
    add(index, "prime-env-b", requires=("prime-env-more; extra == 'fast'",))
    add(index, "prime-env-a", requires=("prime-env-b", "prime-env-c"))
    add(index, "prime-env-c", requires=("prime-env-b[fast]",))
    assert chosen(index, "prime-env-b") == ["prime-env-b 1.0"]
    assert "prime-env-more 1.0" in chosen(index, "prime-env-b[fast]")
    assert "prime-env-more 1.0" in chosen(index, "prime-env-a")


def test_requirements_in_a_circle_end(index):
    add(index, "prime-env-a", requires=("prime-env-b",))
    add(index, "prime-env-b", requires=("prime-env-a",))
    assert sorted(chosen(index, "prime-env-a")) == ["prime-env-a 1.0", "prime-env-b 1.0"]


def test_requirements_that_contradict_are_said(index):
    add(index, "prime-env-b", requires=(f"{NAME}<1",))
    add(index, "prime-env-a", requires=(f"{NAME}>=1", "prime-env-b"))
    with pytest.raises(StoreError):
        chosen(index, "prime-env-a")


def test_a_version_for_another_python_is_left_alone(index):
    index.add(upload(NAME, "3.0", change={"requires_python": ">=99"}), ALICE)
    with pytest.raises(StoreError, match="no version fits"):
        choose(open_source(index.store.url), parse(f"{NAME}==3.0"), TRUST, None)
