"""An index with one distribution, and a server that shows it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from publishing_support import add

from prime_core.publishing.index import Index
from prime_core.publishing.serve import make_server


@pytest.fixture
def index(tmp_path) -> Index:
    made = Index(str(tmp_path / "index"))
    add(made, "prime-env-sums", level="silver")
    return made


@pytest.fixture
def served(index) -> Iterator[str]:
    with make_server(index.store.url, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()
