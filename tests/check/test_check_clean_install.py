"""Rule P13: what pip installs alone works alone; nothing that is installed here helps it."""

from __future__ import annotations

import importlib.metadata
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from check_fixtures import BAD, importing, pyproject, verifying, write
from check_words import GOOD, Files

from prime_core.check.checking import Order, check
from prime_core.check.clean_install import Unlinkable, link
from prime_core.check.limits import Limits
from prime_core.check.needs import needs
from prime_core.check.outcome import Outcome, Report


def outcome(report: Report) -> Outcome:
    """Of the one rule that was run."""
    (found,) = report.outcomes
    return found


@pytest.mark.integration
@pytest.mark.parametrize(
    ("files", "step"),
    [
        pytest.param(
            importing("import iniconfig")(),
            "importing prime_env_words failed",
            id="at the top",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            BAD["P13"](),
            "making and asking environment.words failed",
            id="in the factory",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            verifying("import iniconfig")(),
            "making and asking environment.words failed",
            id="in the verifier",
        ),
    ],
)
def test_a_requirement_that_nobody_wrote_down_is_named(
    files: Files, step: str, checked: Callable[..., Report]
) -> None:
    found = outcome(checked(files, "P13"))
    assert found.status == "failed"
    (finding,) = found.findings
    assert step in finding.seen
    assert "No module named 'iniconfig'" in finding.seen
    assert finding.fix == "add iniconfig to dependencies in pyproject.toml"


@pytest.mark.integration
def test_a_verifier_of_another_distribution_must_be_required(
    checked: Callable[..., Report],
) -> None:
    path = "prime_env_words/environment.py"
    files = {**GOOD, path: GOOD[path].replace("return self._verifier\n", 'return "exact"\n')}
    found = outcome(checked(files, "P13"))
    assert found.status == "failed"
    assert "no verifier is called 'exact'" in found.findings[0].seen
    assert found.findings[0].fix == "add prime-verifier-exact to dependencies in pyproject.toml"
    verifier = 'verifier = { use = "exact", with.mode = "text" }'
    chosen = f'[[cases]]\nplugin = "environment.words"\n{verifier}\n'
    assert outcome(checked({**files, "checks.toml": chosen}, "P13")).status == "passed"


@pytest.mark.integration
def test_what_is_written_down_is_there(checked: Callable[..., Report]) -> None:
    declared = pyproject('"prime-core>=0.1,<1"', '"prime-core>=0.1,<1", "iniconfig"')()
    path = "prime_env_words/environment.py"
    found = outcome(checked({**declared, path: BAD["P13"]()[path]}, "P13"))
    assert found.status == "passed", found


@pytest.mark.integration
def test_what_fails_everywhere_is_another_rule_s(checked: Callable[..., Report]) -> None:
    found = outcome(checked(BAD["I11"](), "P13"))
    assert found.status == "undecided"
    assert "no words today" in found.reason


@pytest.mark.integration
def test_a_wheel_that_pip_refuses_fails(tmp_path: Path) -> None:
    wheel = tmp_path / "prime_env_words-0.1.0-py3-none-win_amd64.whl"
    info = "prime_env_words-0.1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in GOOD.items():
            if name.startswith("prime_env_words/"):
                archive.writestr(name, text)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.4\nName: prime-env-words\nVersion: 0.1.0\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-win_amd64\n")
        archive.writestr(
            f"{info}/entry_points.txt", "[prime_core]\nenvironment.words = prime_env_words\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    found = outcome(check(Order(str(wheel), "bronze", ("P13",), limits=Limits())))
    assert found.status == "failed"
    assert "is not a supported wheel on this platform" in found.findings[0].seen


def installed(
    site: Path, name: str, version: str, *requires: str, files: Files | None = None
) -> None:
    """A distribution's metadata, and files of it."""
    record = []
    for path, text in (files or {}).items():
        write({path: text}, site)
        record.append(f"{path},,")
    metadata = f"Metadata-Version: 2.4\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {each}\n" for each in requires)
    info = f"{name.replace('-', '_')}-{version}.dist-info"
    record.append(f"{info}/METADATA,,")
    write({f"{info}/METADATA": metadata, f"{info}/RECORD": "\n".join(record)}, site)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that metadata is read from."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    return folder


def test_requirements_lead_to_requirements_of_their_extras(site: Path) -> None:
    installed(site, "made-a", "1", "made-b[fast]>=2", "made-c; python_version < '3'")
    installed(site, "made-b", "2.5", "made-d; extra == 'fast'", "made-e; extra == 'slow'")
    installed(site, "made-d", "1", "made-a")
    found = needs(["Made_A"], "it")
    assert set(found.found) == {"made-a", "made-b", "made-d"}
    assert found.unmet == []


def test_what_is_not_met_is_said(site: Path) -> None:
    installed(site, "made-a", "1", "made-b>=2", "made-c")
    installed(site, "made-b", "1.5", "=nonsense=")
    said = needs(["made-a"], "it").unmet
    assert sorted(said) == [
        "'=nonsense=', which made-b requires, isn't a requirement",
        "made-a requires made-b>=2, installed is 1.5",
        "made-c, which made-a requires, isn't installed",
    ]


def test_distributions_that_share_a_folder_are_both_linked(site: Path, tmp_path: Path) -> None:
    installed(site, "made-a", "1", files={"shared/a/__init__.py": "", "shared/x/a.py": ""})
    installed(site, "made-b", "1", files={"shared/b/__init__.py": "", "alone.py": ""})
    other = tmp_path / "other"
    installed(other, "made-c", "1", files={"shared/x/c.py": "", "shared/c.py": ""})
    found = [importlib.metadata.distribution(name) for name in ("made-a", "made-b")]
    found += importlib.metadata.distributions(path=[str(other)])
    target = tmp_path / "links"
    target.mkdir()
    link(found, target)
    names = {str(path.relative_to(target)) for path in target.rglob("*.py")}
    for top in ("a", "b", "x"):
        place = target / "shared" / top
        names |= {str(path.relative_to(target)) for path in place.rglob("*.py")}
    assert {"alone.py", "shared/c.py", "shared/a/__init__.py", "shared/b/__init__.py"} <= names
    assert {"shared/x/a.py", "shared/x/c.py"} <= names


def test_a_source_folder_lends_its_module_alone(site: Path, tmp_path: Path) -> None:
    source = write({"src/made_a/__init__.py": "", "src/tests/test_a.py": ""}, tmp_path / "source")
    installed(site, "made-a", "1", files={"made_a.pth": str(source / "src")})
    write({"made_a-1.dist-info/direct_url.json":
           f'{{"url": "file://{source}", "dir_info": {{"editable": true}}}}'}, site)  # fmt: skip
    target = tmp_path / "links"
    target.mkdir()
    link([importlib.metadata.distribution("made-a")], target)
    assert sorted(path.name for path in target.iterdir()) == ["made_a", "made_a-1.dist-info"]
    (source / "src/made_a").rename(source / "moved")
    with pytest.raises(Unlinkable, match="made-a is installed from"):
        link([importlib.metadata.distribution("made-a")], target)
