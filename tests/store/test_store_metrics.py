from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from prime_core.api.errors import FormatError, StoreError
from prime_core.store.metrics import MetricsLog, read_metrics


def test_records_read_back_in_order(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path, "trainer")
    log.log(3, loss=0.5, reward={"total": np.float32(0.25)}, lags=[2, 2], note="ok", flag=True)
    log.log(None, tokens=np.int64(7), nothing=None)
    log.close()
    first, second = read_metrics(tmp_path)
    assert first["process"] == "trainer"
    assert first["step"] == 3
    assert first["reward"] == {"total": 0.25}
    assert first["lags"] == [2, 2]
    assert first["flag"] is True
    assert second["step"] is None
    assert second["tokens"] == 7
    assert second["time"] >= first["time"]


def test_non_finite_values_survive_strict_json(tmp_path: Path) -> None:
    MetricsLog(tmp_path, "trainer").log(0, a=math.nan, b=math.inf, c=[-math.inf])

    def refuse(token: str) -> None:
        raise AssertionError(token)

    json.loads((tmp_path / "metrics.jsonl").read_text(), parse_constant=refuse)
    record = read_metrics(tmp_path)[0]
    assert math.isnan(record["a"])
    assert record["b"] == math.inf
    assert record["c"] == [-math.inf]


def test_a_run_without_metrics_has_none(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == []


def test_a_line_still_being_written_is_left_out_and_a_broken_one_is_named(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step":0}\n{"step":1')
    assert read_metrics(tmp_path) == [{"step": 0}]
    path.write_text('{"step":0}\n[1]\n')
    with pytest.raises(FormatError, match=r"metrics\.jsonl:2"):
        read_metrics(tmp_path)


def test_a_line_cut_by_a_full_disk_is_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step":0}\n{"step":{"step":1}\n{"step":2}\n')
    assert read_metrics(tmp_path) == [{"step": 0}, {"step": 2}]
    assert "metrics.jsonl:2 is no record" in caplog.text


def test_a_run_directory_that_is_a_file_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("")
    with pytest.raises(StoreError, match="can't be written"):
        MetricsLog(tmp_path / "run", "trainer")


def test_a_value_that_is_no_metric_is_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="object"):
        MetricsLog(tmp_path, "trainer").log(0, x=object())


WRITER = """
import sys
from pathlib import Path
from prime_core.store.metrics import MetricsLog
log = MetricsLog(Path(sys.argv[1]), sys.argv[2])
for n in range(300):
    log.log(n, text=sys.argv[2] * 200)
"""


@pytest.mark.integration
def test_lines_of_several_processes_never_mix(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path), name]) for name in "abc"
    ]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    records = read_metrics(tmp_path)
    assert len(records) == 900
    for name in "abc":
        mine = [record for record in records if record["process"] == name]
        assert [record["step"] for record in mine] == list(range(300))
