"""An index: versions never change, names have owners, publishers at once lose nothing."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from publishing_support import ALICE, MALLORY, add, digest, overwrite, upload

from prime_core.api.errors import FormatError, IntegrityError, StoreError
from prime_core.publishing import layout
from prime_core.publishing.audit import stale, verify
from prime_core.publishing.index import Index

RECORD = "records/prime-env-sums/1/record.json"


def machine(index: Index) -> dict:
    return json.loads(index.store.get("index.json"))


def problems(index: Index) -> str:
    return "\n".join(map(str, verify(index.source).problems))


def test_an_index_verifies_and_building_again_changes_nothing(index):
    before = {path: index.store.get(path) for path in index.pages([])}
    assert index.build() == []
    assert {path: index.store.get(path) for path in index.pages([])} == before
    audit = verify(index.source)
    assert (audit.projects, audit.versions, audit.problems) == (1, 1, [])
    assert stale(index) == []


@pytest.mark.parametrize("version", ["1.0", "1", "1.0.0"])
def test_a_version_never_changes(index, version):
    before = index.store.get(RECORD)
    with pytest.raises(StoreError, match="versions never change"):
        index.add(upload("prime-env-sums", version, body="VALUE = 2\n"), ALICE)
    assert index.store.get(RECORD) == before


def test_a_name_belongs_to_its_first_publisher(index):
    with pytest.raises(IntegrityError, match="belongs to"):
        index.add(upload("prime-env-sums", "2.0", MALLORY), MALLORY)
    add(index, "prime-env-sums", "2.0")
    assert [each["version"] for each in machine(index)["projects"][0]["versions"]] == ["2.0", "1.0"]


def test_who_may_write_to_the_disk_still_cannot_publish_for_another(index):
    forged = upload("prime-env-sums", "3.0", MALLORY)
    index.put(forged)
    found = index.build()
    assert len(found) == 1
    assert "is signed by" in str(found[0])
    assert "3.0" not in json.dumps(machine(index))
    assert "is signed by" in problems(index)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        (RECORD, "wasn't signed by"),
        ("owners/prime-env-sums.json", "wasn't signed by"),
    ],
)
def test_a_changed_statement_is_found(index, tmp_path, path, said):
    raw = index.store.get(path)
    at = raw.index(b'"name":"') + len(b'"name":"')
    overwrite(tmp_path / "index", path, raw[:at] + b"q" + raw[at + 1 :])
    assert said in problems(index)
    assert any(said in str(each) for each in index.build())
    assert machine(index)["projects"] == []


@pytest.mark.parametrize("kind", ["whl", "metadata", "report.json", "card.json"])
def test_a_changed_blob_is_found(index, tmp_path, kind):
    path = next((tmp_path / "index/files").glob(f"*/*{kind}"))
    overwrite(tmp_path / "index", str(path.relative_to(tmp_path / "index")), b"other bytes")
    assert len(verify(index.source).problems) == 1


def test_a_record_of_another_version_in_its_place_is_found(index, tmp_path):
    add(index, "prime-env-sums", "2.0")
    older = index.store.get(RECORD)
    overwrite(tmp_path / "index", "records/prime-env-sums/2/record.json", older)
    assert "the record is of prime-env-sums 1.0, not of prime-env-sums 2" in problems(index)


@pytest.mark.parametrize("raw", [b"", b"{}", b"[]", b"null", b"\xff", b"[" * 5000, b'{"a":1}'])
def test_nonsense_in_place_of_a_record_never_crashes(index, tmp_path, raw):
    overwrite(tmp_path / "index", RECORD, raw)
    add(index, "prime-env-other")
    assert len(verify(index.source).problems) == 1
    assert [each["name"] for each in machine(index)["projects"]] == ["prime-env-other"]


def test_a_yanked_version_stays_listed_as_yanked(index):
    add(index, "prime-env-sums", "2.0")
    with pytest.raises(IntegrityError, match="was published by"):
        index.yank("prime-env-sums", "2.0", "mine now", MALLORY)
    index.yank("prime-env-sums", "2.0", 'pays for "nothing"', ALICE)
    index.build()
    with pytest.raises(StoreError, match="yanked already"):
        index.yank("prime-env-sums", "2.0", "again", ALICE)
    with pytest.raises(StoreError):
        index.yank("prime-env-sums", "7", "no such", ALICE)
    with pytest.raises(FormatError, match="needs a reason"):
        index.yank("prime-env-sums", "1.0", " ", ALICE)
    listed = json.loads(index.store.get("simple/prime-env-sums/index.json"))["files"]
    assert [each["yanked"] for each in listed] == ['pays for "nothing"', False]
    html = index.store.get("simple/prime-env-sums/index.html").decode()
    assert 'data-yanked="pays for &quot;nothing&quot;"' in html
    assert verify(index.source).problems == []


def test_simple_pages_are_what_the_standards_say(index):
    listed = json.loads(index.store.get("simple/index.json"))
    assert listed["meta"]["api-version"] == "1.1"
    assert listed["projects"] == [{"name": "prime-env-sums"}]
    page = json.loads(index.store.get("simple/prime-env-sums/index.json"))
    file = page["files"][0]
    wheel = index.store.get(file["url"].removeprefix("../../"))
    assert digest(wheel) == file["hashes"]["sha256"]
    assert len(wheel) == file["size"]
    metadata = index.store.get(file["url"].removeprefix("../../") + ".metadata")
    assert digest(metadata) == file["core-metadata"]["sha256"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", file["upload-time"])


PUBLISH = """
import sys
sys.path.insert(0, sys.argv[1])
from publishing_support import ALICE, Index, add
index = Index(sys.argv[2])
for number in range(6):
    add(index, f"prime-env-{sys.argv[3]}", f"1.{number}")
"""


@pytest.mark.integration
def test_two_publishers_at_once_lose_nothing(tmp_path):
    url = str(tmp_path / "index")
    here = str(Path(__file__).parent)
    running = [
        subprocess.Popen([sys.executable, "-c", PUBLISH, here, url, name], stderr=subprocess.PIPE)
        for name in ("one", "two")
    ]
    for process in running:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    index = Index(url)
    found = {each["name"]: len(each["versions"]) for each in machine(index)["projects"]}
    assert found == {"prime-env-one": 6, "prime-env-two": 6}
    assert verify(index.source).problems == []
    assert stale(index) == []


def test_a_publisher_that_is_overtaken_builds_again(index, monkeypatch):
    slow, fast = Index(index.store.url), Index(index.store.url)
    pages = slow.pages
    overtaken = []

    def interrupted(problems):
        made = pages(problems)
        if not overtaken:
            overtaken.append(True)
            add(fast, "prime-env-fast")
        return made

    monkeypatch.setattr(slow, "pages", interrupted)
    slow.build()
    names = [each["name"] for each in machine(index)["projects"]]
    assert names == ["prime-env-fast", "prime-env-sums"]


def test_a_publisher_that_died_before_its_record_can_go_on(index):
    again = upload("prime-env-late", "1.0")
    for sha256, filename, data in again.blobs:
        index.store.put(layout.blob_path(sha256, filename), data)
    index.claim("prime-env-late", ALICE)
    assert index.build() == []
    index.add(again, ALICE)
    assert index.build() == []
    assert verify(index.source).versions == 2


def test_an_object_store_holds_an_index_too():
    index = Index("memory://publishing-index")
    add(index, "prime-env-sums")
    add(index, "prime-env-sums", "2.0")
    assert verify(index.source).problems == []
    assert stale(index) == []


@pytest.mark.parametrize("name", ["../x", "", "a/b", "x" * 101, "-", "ü"])
def test_names_that_would_leave_the_index_are_refused(name):
    with pytest.raises(FormatError):
        layout.record_path(name, "1.0")


@pytest.mark.parametrize("version", ["../1", "1!2.0", "", "1/2", ".."])
def test_versions_that_would_leave_the_index_are_refused(version):
    with pytest.raises(FormatError):
        layout.record_path("x", version)


def test_a_blob_is_named_by_a_digest_and_a_plain_name():
    for sha256, filename in (
        ("ab", "x-1-py3-none-any.whl"),
        ("a" * 64, "../x.whl"),
        ("a" * 64, "x"),
    ):
        with pytest.raises(FormatError):
            layout.blob_path(sha256, filename)
