"""A publisher with a name of its own can put anything into its versions: nobody else notices."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest
from publishing_support import MALLORY, add, card, digest, upload

from prime_core.api.errors import FormatError
from prime_core.publishing.audit import mirror, verify
from prime_core.publishing.index import Index, Upload
from prime_core.publishing.publication import Publication
from prime_core.signing import signed_bytes

BAD = "prime-env-bad"


@pytest.fixture
def index(tmp_path) -> Index:
    made = Index(str(tmp_path / "index"))
    add(made, "prime-env-sums")
    return made


def environment(**changed: Any) -> dict[str, Any]:
    made = card(BAD)
    made["environments"][0] |= changed
    return made


@pytest.mark.parametrize(
    "shown",
    [
        {**card(BAD), "readme": "\ud800"},
        {"environments": 5},
        {"environments": [{"name": "a"}]},
        {"environments": ["<script>"]},
        {"profile": {"attempts": "x"}},
        {**card(BAD), "profile": {**card(BAD)["profile"], "tasks": float("inf")}},
        environment(tasks="<script>"),
        environment(chance_level="<script>"),
        environment(measured="<script>alert(1)</script>"),
        environment(samples=[{}]),
        environment(score_range=[0]),
        environment(distributions=[{"policy": "gold", "values": [[1, "many"]]}]),
    ],
)
def test_a_card_of_another_shape_costs_its_own_page_alone(index, shown):
    index.add(upload(BAD, "1.0", MALLORY, shown=shown), MALLORY)
    found = index.build()
    assert [BAD in str(each) for each in found] == [True]
    listed = json.loads(index.store.get("index.json"))["projects"]
    assert [each["name"] for each in listed] == [BAD, "prime-env-sums"]
    page = index.store.get(f"projects/{BAD}/index.html").decode()
    assert "prime-core install" in page
    assert "<script>alert" not in page
    assert "No samples" not in index.store.get("projects/prime-env-sums/index.html").decode()


def test_a_time_that_no_calendar_has_is_refused(index):
    good = upload(BAD, "1.0", MALLORY)
    said = {k: v for k, v in json.loads(good.record).items() if k not in ("signer", "signature")}
    record = signed_bytes(MALLORY, {**said, "published_at": 2**62})
    with pytest.raises(FormatError, match="published_at"):
        Publication.read(record, None, where="here")
    index.claim(BAD, MALLORY)
    index.put(Upload(BAD, "1.0", record, good.blobs))
    assert len(index.build()) == 1


def repacked(data: bytes, method: int, record: bytes | None = None, *, damage: bool) -> bytes:
    """The wheel, compressed anew; damaged where its first file's bytes begin."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w", method) as new:
        for name in old.namelist():
            content = old.read(name)
            new.writestr(name, record if record and name.endswith("/RECORD") else content)
    made = bytearray(out.getvalue())
    start = made.find(b"__init__.py") + len(b"__init__.py")
    for place in range(start, start + 6 * damage):
        made[place] ^= 0xFF
    return bytes(made)


@pytest.mark.parametrize(
    ("method", "record", "damage"),
    [
        (zipfile.ZIP_DEFLATED, None, True),
        (zipfile.ZIP_LZMA, None, True),
        (zipfile.ZIP_BZIP2, None, True),
        (zipfile.ZIP_STORED, b'"' + b"a" * 200_000 + b'",sha256=x,1\n', False),
    ],
)
def test_a_wheel_that_cannot_be_unpacked_is_a_problem_of_its_own(
    index, tmp_path, method, record, damage
):
    good = upload(BAD, "1.0", MALLORY)
    data = repacked(good.blobs[0][2], method, record, damage=damage)
    said = {k: v for k, v in json.loads(good.record).items() if k not in ("signer", "signature")}
    changed = signed_bytes(MALLORY, {**said, "sha256": digest(data), "size": len(data)})
    (_, filename, _), (_, beside, metadata), *others = good.blobs
    blobs = ((digest(data), filename, data), (digest(data), beside, metadata), *others)
    index.claim(BAD, MALLORY)
    index.put(Upload(BAD, "1.0", changed, blobs))
    index.build()
    audit = verify(index.source)
    assert (audit.projects, len(audit.problems)) == (2, 1)
    problems: list = []
    assert mirror(index.source, Index(str(tmp_path / "copy")), problems) == 1
    assert len(problems) == 1
