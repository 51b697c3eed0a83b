"""Files become task tables: formats, digests, cache, bad rows, order and splits."""

from __future__ import annotations

import gzip
import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from prime_core.api import DatasetError
from prime_core.api.datasets import DatasetSource, TaskTable, load_tasks

ROWS = [{"problem_id": f"p{i}", "prompt": f"{i}?", "gold_standard_solution": i} for i in range(40)]


@dataclass
class LocalContext:
    cache_dir: Path
    run_dir: Path | None = None
    offline: bool = False


@pytest.fixture
def context(tmp_path: Path) -> LocalContext:
    return LocalContext(tmp_path / "cache")


def write(path: Path, rows: list[Any]) -> str:
    """Write rows in the format of the suffix; return the file's SHA-256."""
    lines = "".join(json.dumps(row) + "\n" for row in rows).encode()
    if path.name.endswith(".parquet"):
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.name.endswith(".json"):
        path.write_text(json.dumps(rows))
    elif path.name.endswith(".gz"):
        path.write_bytes(gzip.compress(lines, mtime=0))
    else:
        path.write_bytes(lines)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def load(context: LocalContext, path: Path | str, **source: object) -> TaskTable:
    return load_tasks(DatasetSource.model_validate({"url": str(path), **source}), context)


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".json", ".parquet"])
def test_every_format_gives_the_same_tasks(
    suffix: str, tmp_path: Path, context: LocalContext
) -> None:
    sha256 = write(tmp_path / f"rows{suffix}", ROWS)
    table = load(context, tmp_path / f"rows{suffix}", sha256=sha256)
    assert [task.id for task in table] == [f"p{i}" for i in range(40)]
    assert table.digest == "469c27b536f14453051c2af7d708c63d4b208e242117501d250770c4ba25873d"
    assert table.files[0].sha256 == sha256
    assert table[-1].gold == "39"
    assert table[1:3] == (table[1], table[2])


def test_crlf_blank_lines_and_a_byte_order_mark_are_no_rows(
    tmp_path: Path, context: LocalContext
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'\xef\xbb\xbf{"prompt": "a"}\r\n\r\n  \n{"prompt": "b"}')
    assert [task.prompt[0].content for task in load(context, path)] == ["a", "b"]


def test_file_urls_and_home_relative_paths_are_local(
    tmp_path: Path, context: LocalContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "a b.jsonl", ROWS)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert len(load(context, (tmp_path / "a b.jsonl").as_uri())) == 40
    assert len(load(context, "~/a b.jsonl")) == 40


def test_another_digest_is_an_error_that_names_both(tmp_path: Path, context: LocalContext) -> None:
    found = write(tmp_path / "rows.jsonl", ROWS)
    with pytest.raises(DatasetError) as caught:
        load(context, tmp_path / "rows.jsonl", sha256="0" * 64)
    assert found in str(caught.value)
    assert "0" * 64 in str(caught.value)


def test_all_bad_rows_are_reported_with_their_lines(tmp_path: Path, context: LocalContext) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(
        b'{"prompt": "a", "problem_id": "1"}\n[1]\n{"prompt": \n\xff\n'
        b'{"prompt": "b", "problem_id": "1"}\n{"question": "c"}\n' + b"[" * 9999 + b"\n"
    )
    with pytest.raises(DatasetError) as caught:
        load(context, path)
    message = str(caught.value)
    for words in (
        "6 rows can't be used",
        "line 2: a row is a JSON object, not list",
        "line 3: not JSON",
        "line 4: not UTF-8",
        "line 5: the id '1' stands at line 1 already",
        "line 6: no column 'prompt'",
        "line 7: not JSON",
        'bad_rows = "skip"',
    ):
        assert words in message
    table = load(context, path, bad_rows="skip")
    assert [task.prompt[0].content for task in table] == ["a"]
    assert len(table.bad_rows) == 6


def test_twenty_bad_rows_are_shown_and_the_others_counted(
    tmp_path: Path, context: LocalContext
) -> None:
    write(tmp_path / "rows.jsonl", [{"x": 1}] * 50)
    with pytest.raises(DatasetError) as caught:
        load(context, tmp_path / "rows.jsonl")
    assert str(caught.value).count("no column 'prompt'") == 20
    assert "50 rows" in str(caught.value)
    assert "and 30 more" in str(caught.value)


def test_ids_are_unique_over_all_files(tmp_path: Path, context: LocalContext) -> None:
    write(tmp_path / "a.jsonl", ROWS[:2])
    write(tmp_path / "b.jsonl", ROWS[1:3])
    source = DatasetSource(url=(str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")))
    with pytest.raises(DatasetError, match=r"b\.jsonl, line 1: the id 'p1' stands at .*a\.jsonl"):
        load_tasks(source, context)


def test_train_and_test_share_nothing_and_cover_all(tmp_path: Path, context: LocalContext) -> None:
    write(tmp_path / "rows.jsonl", ROWS)
    ids = {
        name: [
            task.id
            for task in load(
                context, tmp_path / "rows.jsonl", split={"name": name, "test_share": 0.3}
            )
        ]
        for name in ("train", "test", "all")
    }
    assert not set(ids["train"]) & set(ids["test"])
    assert sorted(ids["train"] + ids["test"]) == sorted(ids["all"])
    assert ids["test"]


def test_limit_counts_after_split_and_task_type(tmp_path: Path, context: LocalContext) -> None:
    rows = [{**row, "task_type": "ab"[i % 2]} for i, row in enumerate(ROWS)]
    write(tmp_path / "rows.jsonl", rows)
    table = load(context, tmp_path / "rows.jsonl", task_types=["b"], limit=3)
    assert [task.id for task in table] == ["p1", "p3", "p5"]


def test_parquet_reads_only_the_columns_that_are_mapped(
    tmp_path: Path, context: LocalContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.parquet

    asked: list[list[str]] = []
    original = pyarrow.parquet.ParquetFile.iter_batches

    def spy(self: Any, **options: Any) -> Any:
        asked.append(options["columns"])
        return original(self, **options)

    monkeypatch.setattr(pyarrow.parquet.ParquetFile, "iter_batches", spy)
    rows = [{"q": {"text": "a"}, "llm_response": "long"}]
    write(tmp_path / "rows.parquet", rows)
    table = load(context, tmp_path / "rows.parquet", columns={"prompt": "q.text"})
    assert table[0].prompt[0].content == "a"
    assert asked == [["q"]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("rows.csv", b"", "isn't a format of tasks"),
        ("rows.json", b"{}", "not dict"),
        ("rows.json", b"[", "not JSON"),
        ("rows.jsonl", b"", "no task is left"),
        ("rows.jsonl.gz", b"plain", "can't be read"),
        ("rows.jsonl.gz", gzip.compress(b"{}" * 999)[:-9], "can't be read"),
        ("rows.parquet", b"PAR1", "can't be read"),
    ],
)
def test_files_that_can_not_be_read_say_so(
    name: str, content: bytes, words: str, tmp_path: Path, context: LocalContext
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DatasetError, match=words):
        load(context, tmp_path / name)


def test_a_missing_file_names_where_relative_paths_start(context: LocalContext) -> None:
    with pytest.raises(DatasetError, match="no such file") as caught:
        load(context, "nowhere.jsonl")
    assert str(Path.cwd()) in str(caught.value)


# --- remote files -------------------------------------------------------------------------------


@pytest.fixture
def remote(tmp_path: Path) -> tuple[str, str]:
    """A URL and digest on fsspec's in-memory file system."""
    import fsspec

    sha256 = write(tmp_path / "rows.jsonl", ROWS)
    url = f"memory://{tmp_path.name}/rows.jsonl"
    with fsspec.open(url, "wb") as stream:
        stream.write((tmp_path / "rows.jsonl").read_bytes())
    return url, sha256


def forget(url: str) -> None:
    import fsspec

    fsspec.filesystem("memory").rm(url.removeprefix("memory:/"))


def test_a_pinned_file_is_fetched_once(remote: tuple[str, str], context: LocalContext) -> None:
    url, sha256 = remote
    first = load(context, url, sha256=sha256)
    forget(url)
    context.offline = True
    assert load(context, url, sha256=sha256).digest == first.digest
    assert not list(context.cache_dir.rglob("*.part"))


def test_an_unpinned_file_is_fetched_anew_and_cached_for_offline_use(
    remote: tuple[str, str], context: LocalContext
) -> None:
    import fsspec

    url, _ = remote
    assert len(load(context, url)) == 40
    with fsspec.open(url, "wb") as stream:
        stream.write(json.dumps(ROWS[0]).encode())
    assert len(load(context, url)) == 1
    forget(url)
    context.offline = True
    assert len(load(context, url)) == 1


def test_offline_without_a_cached_file_says_what_to_do(
    remote: tuple[str, str], context: LocalContext
) -> None:
    context.offline = True
    with pytest.raises(DatasetError, match="load it once online"):
        load(context, remote[0])


def test_a_damaged_cached_file_is_fetched_again(
    remote: tuple[str, str], context: LocalContext
) -> None:
    url, sha256 = remote
    cached = load(context, url, sha256=sha256).files[0].path
    cached.write_bytes(b'{"prompt": "poison"}')
    assert len(load(context, url, sha256=sha256)) == 40


def test_a_fetched_file_of_another_digest_is_never_cached(
    remote: tuple[str, str], context: LocalContext
) -> None:
    with pytest.raises(DatasetError, match="pinned one"):
        load(context, remote[0], sha256="1" * 64)
    assert [path for path in context.cache_dir.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("url", ["memory://gone/rows.jsonl", "nosuch://host/rows.jsonl"])
def test_what_can_not_be_fetched_says_so(url: str, context: LocalContext) -> None:
    with pytest.raises(DatasetError, match="can't be fetched"):
        load(context, url)


# --- the hub ------------------------------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """A stand-in for huggingface_hub; the list holds what was asked for."""
    write(tmp_path / "train.jsonl", ROWS)
    calls: list[dict[str, Any]] = []

    def download(repository: str, file: str, **options: Any) -> str:
        calls.append({"repository": repository, "file": file, **options})
        if file != "data/train.jsonl":
            raise FileNotFoundError(file)
        return str(tmp_path / "train.jsonl")

    def listing(self: object, repository: str, **options: Any) -> list[str]:
        if repository == "org/two":
            return ["a.parquet", "b.jsonl", "README.md"]
        return ["README.md", "data/train.jsonl"]

    api = type("HfApi", (), {"list_repo_files": listing})
    module = SimpleNamespace(hf_hub_download=download, HfApi=api)
    monkeypatch.setitem(sys.modules, "huggingface_hub", module)
    return calls


def test_a_hub_data_set_is_read_at_its_commit(
    hub: list[dict[str, Any]], context: LocalContext
) -> None:
    assert len(load(context, "hub://org/name/data/train.jsonl", revision=COMMIT)) == 40
    assert len(load(context, "hub://org/name", revision=COMMIT)) == 40
    assert all(call["revision"] == COMMIT for call in hub)
    assert all(call["repo_type"] == "dataset" for call in hub)
    assert all(not call["local_files_only"] for call in hub)


def test_hub_mistakes_say_what_to_do(hub: list[dict[str, Any]], context: LocalContext) -> None:
    with pytest.raises(DatasetError, match=r"2 files of tasks: a\.parquet, b\.jsonl"):
        load(context, "hub://org/two", revision=COMMIT)
    with pytest.raises(DatasetError, match="two names"):
        load(context, "hub://org", revision=COMMIT)
    context.offline = True
    with pytest.raises(DatasetError, match="can't be listed"):
        load(context, "hub://org/name", revision=COMMIT)
    with pytest.raises(DatasetError, match="this run is offline"):
        load(context, "hub://org/name/other.jsonl", revision=COMMIT)


def test_without_huggingface_hub_the_error_names_it(
    context: LocalContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(DatasetError, match="pip install huggingface_hub"):
        load(context, "hub://org/name/a.jsonl", revision=COMMIT)
