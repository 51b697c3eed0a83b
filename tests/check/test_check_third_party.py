"""Third-party truth: what the ladder says of other people's data sets and packages.

The sweep needs reasoning-gym: pip install -c constraints.txt reasoning-gym. The published packages
are fetched by pip; wheels written here say the same in their metadata, for where no index answers.
"""

from __future__ import annotations

import importlib.util
import json
import random
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest

from prime_core.check.checking import Order, check
from prime_core.check.outcome import Report

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "third_party_check.py"
RESULTS = SCRIPT.with_suffix(".json")
# Rules that must find a defect that was known before the ladder looked.
KNOWN = {
    "game_of_life_halting": "T04",  # pays any text
    "coin_flip": "H01",  # pays 0
    "isomorphic_strings": "N01",  # other questions under another hash seed
    "prime_factorization": "R01",  # raises on what is no number
}
SOUND = ("chain_sum", "base_conversion", "caesar_cipher", "count_primes", "lcm", "dice")

with_library = pytest.mark.skipif(
    importlib.util.find_spec("reasoning_gym") is None, reason="reasoning-gym isn't installed"
)


def sweep(state: Path, *arguments: str) -> tuple[subprocess.CompletedProcess[str], list[Any]]:
    """The benchmark's answer, and its rows."""
    command = [sys.executable, str(SCRIPT), *arguments, "--state", str(state), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = json.loads(done.stdout) if done.stdout.startswith("[") else []
    return done, rows


def rules(row: dict[str, Any]) -> set[str]:
    """Ids of a row's failed rules."""
    return {each["rule"] for each in row["failures"]}


@with_library
@pytest.mark.integration
def test_a_sound_data_set_holds_silver(tmp_path: Path) -> None:
    name = random.Random(zlib.crc32(b"third party")).choice(SOUND)
    done, rows = sweep(tmp_path, name)
    assert [row["reached"] for row in rows] == ["silver"], done.stderr


@with_library
@pytest.mark.slow
@pytest.mark.integration
def test_known_defects_are_found_and_score_as_shown(tmp_path: Path) -> None:
    done, rows = sweep(tmp_path, *KNOWN)
    assert done.returncode == 0, done.stderr
    assert all(KNOWN[row["dataset"]] in rules(row) for row in rows)
    looked = [f["reproduced"] for row in rows for each in row["failures"] for f in each["findings"]]
    assert False not in looked
    assert True in looked


@with_library
@pytest.mark.slow
@pytest.mark.integration
def test_the_library_s_own_search_for_marks_takes_too_long(tmp_path: Path) -> None:
    done, rows = sweep(tmp_path, "chain_sum:library")
    assert [rules(row) for row in rows] == [{"R02"}], done.stderr


@with_library
@pytest.mark.slow
@pytest.mark.integration
def test_every_data_set_is_checked_and_every_finding_seen_again(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--state", str(tmp_path), "--out", str(tmp_path / "all")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_published_table_holds_what_it_must_show() -> None:
    published = json.loads(RESULTS.read_text(encoding="utf-8"))
    rows = {row["dataset"]: row for row in published["rows"]}
    assert len(rows) == published["data sets"] == 105
    assert sum(row["reached"] == "silver" for row in rows.values()) >= 30
    for name, rule in KNOWN.items():
        assert rule in rules(rows[name])
    shown = [f for row in rows.values() for each in row["failures"] for f in each["findings"]]
    assert not [each for each in shown if each["reproduced"] is False]


# --- published packages ---------------------------------------------------------------------------

# What the two packages say of themselves, as far as the rules read it.
METADATA = {
    "verifiable_labs_code_humaneval": (
        "Metadata-Version: 2.3\nName: verifiable-labs-code-humaneval\nVersion: 0.1.1\n"
        "Summary: An environment of another framework\nLicense: Apache-2.0\n"
        "Requires-Python: >=3.11\nRequires-Dist: numpy>=1.26\n"
        "Requires-Dist: verifiable-labs-envs-core>=0.1.1\n",
        "[verifiers.environments]\n"
        "code-humaneval = verifiable_labs_code_humaneval:load_environment\n",
        "verifiable_labs_code_humaneval",
    ),
    "gem_llm": (
        "Metadata-Version: 2.1\nName: gem-llm\nVersion: 0.1.0\n"
        "Summary: A gym of another framework\n"
        "License: Apache-2.0\nRequires-Python: >=3.10, <=3.12\nRequires-Dist: nltk==3.9.1\n"
        "Requires-Dist: reasoning-gym==0.1.23\nRequires-Dist: msgspec==0.19.0\n",
        "",
        "gem",
    ),
}
# Rule to words of its finding.
SAID = {
    "verifiable_labs_code_humaneval": {
        "P02": "'Apache-2.0' stands in the old field License",
        "P04": "it has verifiers.environments, which prime-core doesn't read",
        "P05": "no requirement on prime-core",
        "P08": "it requires verifiable-labs-envs-core>=0.1.1, which isn't installed",
    },
    "gem_llm": {
        "P01": "requires-python <=3.12 leaves out 3.12.1",
        "P04": "no entry point of group prime_core",
        "P05": "no requirement on prime-core",
        "P07": "gem stands at the top of the wheel beside gem_llm",
        "P08": "it requires nltk==3.9.1",
    },
}


def findings(report: Report) -> dict[str, str]:
    """Failed rule to all that it saw."""
    return {
        outcome.rule.id: "\n".join(each.seen for each in outcome.findings)
        for outcome in report.outcomes
        if outcome.status == "failed"
    }


def holds(report: Report, name: str) -> None:
    """The report says clearly what's wrong with the package."""
    said = findings(report)
    for rule, words in SAID[name].items():
        assert words in said.get(rule, ""), f"{rule}: {said}"
    assert report.exit_code == 1
    assert report.reached == "none"


@pytest.mark.integration
@pytest.mark.parametrize("name", METADATA)
def test_a_package_of_another_framework_fails_clearly(name: str, tmp_path: Path) -> None:
    metadata, entries, module = METADATA[name]
    info = f"{name}-1.dist-info"
    wheel = tmp_path / f"{name}-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{module}/__init__.py", "import nowhere_to_be_found\n")
        archive.writestr(
            f"{info}/METADATA", f"{metadata}\nWhat it does, {'in words, ' * 20}ends.\n"
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(f"{info}/entry_points.txt", entries)
        archive.writestr(f"{info}/RECORD", "")
    holds(check(Order(str(wheel), "silver")), name)


@pytest.mark.slow
@pytest.mark.integration
@pytest.mark.parametrize("name", METADATA)
def test_the_published_package_fails_the_same_way(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--dest", str(tmp_path)]
    done = subprocess.run(
        [*command, name.replace("_", "-")], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip("no index answers")
    holds(check(Order(str(next(tmp_path.glob("*.whl"))), "silver")), name)
