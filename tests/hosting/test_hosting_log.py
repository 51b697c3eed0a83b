"""A host may put anything in the place of its log: nothing outside is written, nothing waits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from prime_core.hosting.process import log_tail, open_log

APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND


def test_a_log_is_appended_to_and_its_end_is_read(tmp_path: Path) -> None:
    for line in (b"one\n", b"two\n"):
        with open_log(tmp_path / "host.log", APPEND) as file:
            file.write(line)
    assert log_tail(tmp_path / "host.log") == "one\ntwo"


def test_a_link_or_a_pipe_in_its_place_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("secret")
    (tmp_path / "link").symlink_to(tmp_path / "other")
    os.mkfifo(tmp_path / "pipe")
    for name in ("link", "pipe"):
        with pytest.raises(OSError, match=r"."):
            open_log(tmp_path / name, APPEND)
        assert log_tail(tmp_path / name) == ""
    assert (tmp_path / "other").read_text() == "secret"
