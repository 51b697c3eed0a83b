"""Nothing reaches pip that a trusted publisher didn't sign, byte for byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from publishing_support import ALICE, MALLORY, add, overwrite, tiny_wheel, upload

from prime_core.api.errors import FormatError, IntegrityError, RunError, StoreError
from prime_core.publishing.index import Index
from prime_core.publishing.install import Place, install
from prime_core.publishing.installed import PUBLICATION, Installed, installed, note, publication
from prime_core.publishing.publication import Dependency
from prime_core.publishing.resolve import Policy, choose, parse, resolve
from prime_core.publishing.serve import make_server
from prime_core.publishing.source import open_source

NAME = "prime-env-sums"
TRUST = Policy(frozenset({ALICE.address}))
OFFLINE = ("--no-index",)


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


@pytest.mark.integration
def test_it_installs_notes_and_puts_changed_files_right(index, tmp_path):
    place = Place(target=tmp_path / "site")
    with make_server(index.store.url, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        install(NAME, url, TRUST, place, pip_options=OFFLINE)
        server.shutdown()
        thread.join()
    one = place.installed()[NAME]
    found = publication(one)
    assert found is not None
    assert (found.signer, found.value.version) == (ALICE.address, "1.0")
    record = (one.dist_info / "RECORD").read_text()
    assert record.count(PUBLICATION) == 1
    note(one, (one.dist_info / PUBLICATION).read_bytes())
    assert (one.dist_info / "RECORD").read_text() == record

    module = tmp_path / "site/prime_env_sums/__init__.py"
    module.write_text("VALUE = 666\n")
    install(NAME, index.store.url, TRUST, place, pip_options=OFFLINE)
    assert module.read_text() == "VALUE = 1\n"

    rewritten = Index(str(tmp_path / "rewritten"))
    add(rewritten, NAME, "1.0", body="VALUE = 2\n")
    with pytest.raises(IntegrityError, match="another record"):
        install(NAME, rewritten.store.url, TRUST, place, pip_options=OFFLINE)


@pytest.mark.parametrize("what", ["bytes", "wheel", "size"])
def test_a_tampered_wheel_never_reaches_pip(index, tmp_path, what):
    place = next((tmp_path / "index/files").glob("*/prime_env_sums*.whl"))
    path = str(place.relative_to(tmp_path / "index"))
    evil = {
        "bytes": place.read_bytes()[:-1] + b"!",
        "wheel": tiny_wheel(NAME, body="import os\n")[1],
        "size": place.read_bytes() + b"\0",
    }[what]
    overwrite(tmp_path / "index", path, evil)
    with pytest.raises(IntegrityError, match="SHA-256 is"):
        install(NAME, index.store.url, TRUST, Place(target=tmp_path / "site"))
    assert not (tmp_path / "site").exists()


def test_a_signed_record_that_lies_about_its_wheel_is_refused(tmp_path):
    index = Index(str(tmp_path / "index"))
    index.add(upload(NAME, change={"requires": ()}, requires=("evil>=1",)), ALICE)
    index.build()
    with pytest.raises(IntegrityError, match="another requirements"):
        install(NAME, index.store.url, TRUST, Place(target=tmp_path / "site"))


def test_a_dry_run_verifies_and_installs_nothing(index, tmp_path):
    place = Place(target=tmp_path / "site")
    done = install(NAME, index.store.url, TRUST, place, dry_run=True)
    assert [each.record.value.version for each in done] == ["1.0"]
    assert not (tmp_path / "site").exists()


@pytest.mark.integration
def test_locked_holds_pip_to_the_versions_of_the_check(tmp_path):
    index = Index(str(tmp_path / "index"))
    held = (Dependency(name="no-such-thing", version="1.0", sha256="a" * 64),)
    add(index, NAME, requires=("no-such-thing",), dependencies=held)
    links = tmp_path / "links"
    links.mkdir()
    for version in ("1.0", "2.0"):
        filename, data = tiny_wheel("no-such-thing", version)
        (links / filename).write_bytes(data)
    options = (*OFFLINE, "--find-links", str(links))
    place = Place(target=tmp_path / "site")
    install(NAME, index.store.url, TRUST, place, locked=True, pip_options=options)
    assert place.installed()["no-such-thing"].version == "1.0"  # where 2.0 is to be had


@pytest.mark.integration
def test_what_pip_says_is_shown(tmp_path):
    index = Index(str(tmp_path / "index"))
    add(index, NAME, requires=("no-such-thing-anywhere",))
    with pytest.raises(RunError, match="no-such-thing-anywhere"):
        install(NAME, index.store.url, TRUST, Place(target=tmp_path / "x"), pip_options=OFFLINE)


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff"])
def test_a_damaged_note_is_never_a_publication(index, tmp_path, raw):
    folder = tmp_path / "prime_env_sums-1.0.dist-info"
    folder.mkdir()
    (folder / PUBLICATION).write_bytes(raw)
    with pytest.raises((FormatError, IntegrityError)):
        publication(Installed(NAME, "1.0", tmp_path))


def test_a_note_of_another_distribution_is_refused(index, tmp_path):
    folder = tmp_path / "prime_env_other-1.0.dist-info"
    folder.mkdir()
    (folder / PUBLICATION).write_bytes(index.store.get(f"records/{NAME}/1/record.json"))
    with pytest.raises(IntegrityError, match="the record is of prime-env-sums"):
        publication(Installed("prime-env-other", "1.0", tmp_path))


def test_an_interpreter_that_cannot_be_asked_is_named(tmp_path):
    with pytest.raises(RunError, match="can't be asked"):
        installed(tmp_path / "no-python")


@pytest.mark.integration
def test_the_commands_go_the_whole_way(tmp_path):
    def run(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "prime_core", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )
        assert done.returncode == code, done.stdout + done.stderr
        return done

    key = ("--key", "k/publisher.key")
    run("new", "environment", "letters")
    project = "prime-env-letters"
    shown = run("publish", project, "--to", "index", "--level", "none", *key, "--json")
    record = json.loads(shown.stdout)
    assert record["datasets"][0]["tasks"] >= 10
    again = run("publish", project, "--to", "index", "--level", "none", *key, code=2)
    assert "versions never change" in again.stderr
    assert "1 projects, 1 versions, 0 problems" in run("index", "verify", "index").stdout
    trust = ("--publisher", record["publisher"].upper().replace("0X", "0x"))
    options = ("--from", "index", "--target", "site", "--", "--no-index", "--no-deps")
    assert "whom you haven't named" in run("install", project, *options, code=2).stderr
    assert "installed prime-env-letters 0.1.0" in run("install", project, *trust, *options).stdout
    assert (tmp_path / "site/prime_env_letters-0.1.0.dist-info" / PUBLICATION).is_file()
    run("index", "yank", f"{project}==0.1.0", "--to", "index", "--reason", "a test", *key)
    refused = run("install", project, *trust, *options, code=2)
    assert "0.1.0 (yanked)" in refused.stderr
    shutil.rmtree(tmp_path / "index/simple")
    assert "page isn't what the records give" in run("index", "verify", "index", code=1).stderr
    run("index", "build", "index")
    run("index", "mirror", "--from", "index", "--to", "copy")
    assert (
        Path(tmp_path / "copy/index.json").read_bytes()
        == (tmp_path / "index/index.json").read_bytes()
    )
