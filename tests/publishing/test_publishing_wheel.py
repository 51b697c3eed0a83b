"""Wheels are read as if an enemy had made them."""

from __future__ import annotations

import io
import zipfile

import pytest
from publishing_support import tiny_wheel

from prime_core.api.errors import FormatError, IntegrityError, RunError
from prime_core.publishing import wheel
from prime_core.publishing.wheel import build, read_wheel


def zipped(*entries: tuple[str | zipfile.ZipInfo, str]) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for entry, text in entries:
            made.writestr(entry, text)
    return archive.getvalue()


def test_a_wheel_says_what_it_holds():
    filename, data = tiny_wheel("prime-env-sums", requires=("numpy>=2",))
    read = read_wheel(data, filename)
    assert (read.name, read.version, read.requires) == ("prime-env-sums", "1.0", ("numpy>=2",))
    assert read.plugins == (("environment", "prime_env_sums", "prime_env_sums"),)
    assert read.readme.strip() == "# prime-env-sums"


def test_the_source_digest_covers_python_files_alone():
    plain = read_wheel(*tiny_wheel("a-b")[::-1])
    other = read_wheel(*tiny_wheel("a-b", body="VALUE = 2\n")[::-1])
    data = read_wheel(*tiny_wheel("a-b", files={"a_b/data.txt": "x"})[::-1])
    assert plain.source_sha256 != other.source_sha256
    assert plain.source_sha256 == data.source_sha256
    assert [path for path, _ in data.data] == ["a_b/data.txt"]


@pytest.mark.parametrize(
    "path",
    ["../evil.py", "/etc/evil.py", "a_b/../../evil.py", "a_b\\evil.py", "C:evil.py", "a_b//x.py"],
)
def test_paths_that_lead_out_are_refused(path):
    filename, _ = tiny_wheel("a-b")
    with pytest.raises(FormatError, match="leads out of the wheel"):
        read_wheel(zipped((path, "")), filename)


def test_links_and_doubles_are_refused():
    filename, _ = tiny_wheel("a-b")
    link = zipfile.ZipInfo("a_b/link.py")
    link.external_attr = 0o120777 << 16
    with pytest.raises(FormatError, match="symbolic link"):
        read_wheel(zipped((link, "/etc/passwd")), filename)
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = zipped(("a_b/x.py", "1"), ("a_b/x.py", "2"))
    with pytest.raises(FormatError, match="stands twice"):
        read_wheel(data, filename)


def test_bombs_are_refused(monkeypatch):
    filename, data = tiny_wheel("a-b")
    for name, limit in (("MAX_WHEEL", 10), ("MAX_UNPACKED", 10), ("MAX_FILES", 2)):
        with monkeypatch.context() as patch:
            patch.setattr(wheel, name, limit)
            with pytest.raises(FormatError):
                read_wheel(data, filename)


@pytest.mark.parametrize("name", ["x.whl", "../a_b-1.0-py3-none-any.whl", "a_b-1.0.tar.gz", ""])
def test_names_that_are_no_wheels_are_refused(name):
    with pytest.raises(FormatError):
        read_wheel(tiny_wheel("a-b")[1], name)


@pytest.mark.parametrize("data", [b"", b"PK", b"hello", b"\0" * 100])
def test_bytes_that_are_no_wheel_are_refused(data):
    with pytest.raises(FormatError, match="not a wheel"):
        read_wheel(data, tiny_wheel("a-b")[0])


def test_a_file_without_a_name_is_refused():
    nameless = zipfile.ZipInfo("x")
    nameless.filename = ""
    with pytest.raises(FormatError, match="not a wheel"):
        read_wheel(zipped((nameless, "x")), tiny_wheel("a-b")[0])


def test_damaged_bytes_are_refused_whatever_is_damaged():
    filename, data = tiny_wheel("a-b")
    for at in range(0, len(data), 7):
        changed = bytearray(data)
        changed[at] ^= 0x5A
        try:
            read = read_wheel(bytes(changed), filename)
        except (FormatError, IntegrityError):
            continue
        assert read.source_sha256 == read_wheel(data, filename).source_sha256


def test_a_record_that_lies_is_refused():
    filename, data = tiny_wheel("a-b", record="")
    with pytest.raises(IntegrityError, match="RECORD and content differ"):
        read_wheel(data, filename)
    with zipfile.ZipFile(io.BytesIO(tiny_wheel("a-b")[1])) as archive:
        files = {name: archive.read(name).decode() for name in archive.namelist()}
    files["a_b/__init__.py"] = "VALUE = 666\n"
    with pytest.raises(IntegrityError, match="isn't the file that RECORD names"):
        read_wheel(zipped(*files.items()), filename)


def test_another_name_or_version_inside_is_refused():
    _, data = tiny_wheel("a-b")
    with pytest.raises(FormatError, match="no dist-info"):
        read_wheel(data, "c_d-1.0-py3-none-any.whl")
    with pytest.raises(FormatError, match="METADATA says"):
        read_wheel(data, "a_b-2.0-py3-none-any.whl")


def test_a_folder_without_a_project_is_named(tmp_path):
    with pytest.raises(RunError, match=r"no pyproject\.toml"):
        build(tmp_path, tmp_path / "out")


def test_a_build_that_depends_on_the_time_zone_is_refused(tmp_path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(
        '[build-system]\nrequires = ["hatchling"]\nbuild-backend = "hatchling.build"\n'
        '[project]\nname = "x"\nversion = "1"\n'
        '[tool.hatch.build.targets.wheel.hooks.custom]\npath = "hook.py"\n'
    )
    (tmp_path / "hook.py").write_text(
        "import os, pathlib\n"
        "from hatchling.builders.hooks.plugin.interface import BuildHookInterface\n"
        "class Hook(BuildHookInterface):\n"
        "    def initialize(self, version, build_data):\n"
        "        pathlib.Path(self.root, 'x', 'zone.py').write_text(repr(os.environ['TZ']))\n"
    )
    with pytest.raises(IntegrityError, match="different wheels"):
        build(tmp_path, tmp_path / "out")
