"""Nothing reaches pip that a trusted publisher didn't sign, byte for byte."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from publishing_support import ALICE, add, overwrite, tiny_wheel, upload

from prime_core.api.errors import FormatError, IntegrityError, RunError
from prime_core.publishing.index import Index
from prime_core.publishing.install import Place, install
from prime_core.publishing.installed import PUBLICATION, Installed, installed, note, publication
from prime_core.publishing.publication import Dependency
from prime_core.publishing.resolve import Policy
from prime_core.publishing.serve import make_server

NAME = "prime-env-sums"
TRUST = Policy(frozenset({ALICE.address}))
OFFLINE = ("--no-index",)


@pytest.fixture
def index(tmp_path) -> Index:
    made = Index(str(tmp_path / "index"))
    add(made, NAME, "1.0", level="bronze")
    return made


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
def test_pip_gets_what_an_extra_requires_of_others(tmp_path):
    index = Index(str(tmp_path / "index"))
    add(index, NAME, requires=("no-such-thing; extra == 'fast'",))
    links = tmp_path / "links"
    links.mkdir()
    filename, data = tiny_wheel("no-such-thing", "1.0")
    (links / filename).write_bytes(data)
    options = (*OFFLINE, "--find-links", str(links))
    for text, there in ((NAME, False), (f"{NAME}[fast]", True)):
        place = Place(target=tmp_path / text)
        install(text, index.store.url, TRUST, place, pip_options=options)
        assert ("no-such-thing" in place.installed()) is there


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
