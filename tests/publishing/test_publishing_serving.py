"""An index as others have it: from a server, as a mirror, through plain pip."""

from __future__ import annotations

import subprocess
import sys

import pytest
from publishing_support import ALICE, add, overwrite

from prime_core.api.errors import FormatError, StoreError
from prime_core.publishing.audit import mirror, verify
from prime_core.publishing.index import Index
from prime_core.publishing.source import open_source, read_machine


def test_a_missing_index_is_named(tmp_path, served):
    with pytest.raises(StoreError, match="there is no index"):
        open_source(str(tmp_path / "nothing"))
    with pytest.raises(StoreError, match="there is no index"):
        open_source(f"{served}/simple/nothing")
    with pytest.raises(StoreError, match="can't be reached"):
        open_source("http://127.0.0.1:9/")


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b'{"projects": 1}', b'{"projects": [{"name": "../x"}]}']
)
def test_a_machine_page_that_is_none_is_refused(raw):
    with pytest.raises(FormatError, match=r"index\.json"):
        read_machine(raw, "here")


def test_a_mirror_is_as_good_as_its_source(index, served, tmp_path):
    add(index, "prime-env-sums", "2.0")
    index.yank("prime-env-sums", "1.0", "old", ALICE)
    index.build()
    found: list = []
    copy = Index(str(tmp_path / "copy"))
    assert mirror(open_source(served), copy, found) == 2
    assert mirror(open_source(served), copy, found) == 0
    assert found == []
    assert verify(copy.source).problems == []
    assert {path: copy.store.get(path) for path in copy.pages([])} == index.pages([])


def test_a_mirror_copies_nothing_that_does_not_verify(index, tmp_path):
    add(index, "prime-env-good")
    wheel = next((tmp_path / "index/files").glob("*/prime_env_sums*.whl"))
    overwrite(tmp_path / "index", str(wheel.relative_to(tmp_path / "index")), b"evil")
    found: list = []
    copy = Index(str(tmp_path / "copy"))
    assert mirror(open_source(index.store.url), copy, found) == 1
    assert "SHA-256 is" in str(found[0])
    assert copy.source.projects() == ["prime-env-good"]


def test_the_server_speaks_to_browsers_and_to_pip(served):
    import httpx

    accept = "application/vnd.pypi.simple.v1+json, text/html;q=0.1"
    answer = httpx.get(f"{served}/simple/prime-env-sums/", headers={"Accept": accept})
    assert answer.headers["Content-Type"] == "application/vnd.pypi.simple.v1+json"
    assert answer.json()["name"] == "prime-env-sums"
    assert "text/html" in httpx.get(f"{served}/simple/").headers["Content-Type"]
    assert httpx.head(f"{served}/").content == b""
    assert httpx.get(f"{served}/simple").headers["Location"] == "/simple/"
    for path in ("/nothing", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/.hidden"):
        assert httpx.get(f"{served}{path}").status_code == 404


@pytest.mark.integration
@pytest.mark.parametrize("scheme", ["http", "file"])
def test_plain_pip_installs_from_it(index, served, tmp_path, scheme):
    add(index, "prime-env-sums", "2.0", requires=("prime-env-base>=1",))
    add(index, "prime-env-base")
    root = served if scheme == "http" else (tmp_path / "index").as_uri()
    command = [sys.executable, "-m", "pip", "install", "--isolated", "--no-cache-dir"]
    command += ["--disable-pip-version-check", "--target", str(tmp_path / "site")]
    done = subprocess.run(
        [*command, "--index-url", f"{root}/simple", "prime-env-sums"],
        capture_output=True,
        text=True,
        env={"PATH": "/usr/bin:/bin", "PIP_CONFIG_FILE": "/dev/null"},
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "site/prime_env_sums-2.0.dist-info").is_dir()
    assert (tmp_path / "site/prime_env_base").is_dir()
