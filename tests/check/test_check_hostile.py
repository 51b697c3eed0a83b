"""Hostile packages: whatever one does, the check ends, says so, and this machine is unharmed.

Each package does one thing at its build, at its import, in its factory or with its tasks.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from check_fixtures import environment, importing
from check_words import GOOD
from hostile_support import RULES, checked, jailed, running, seen, statuses

from prime_core.check.limits import Limits

pytestmark = pytest.mark.integration


@pytest.mark.slow
def test_a_loop_at_import_is_ended(tmp_path: Path) -> None:
    report = checked(importing("while True: pass")(), tmp_path, limits=Limits(start_s=3.0))
    assert statuses(report)["I01"] == "failed"
    assert "while importing prime_env_words: it didn't end in time" in seen(report)
    assert statuses(report)["T01"] == "undecided"


@pytest.mark.slow
def test_endless_output_fills_neither_memory_nor_the_report(tmp_path: Path) -> None:
    files = importing("import sys", "while True: sys.stderr.write('x' * 65536)")()
    report = checked(files, tmp_path, "I01", limits=Limits(start_s=20.0))
    assert statuses(report) == {"I01": "failed"}
    assert len(seen(report)) < 10_000


def test_files_of_this_machine_are_out_of_reach(tmp_path: Path) -> None:
    kept, home = tmp_path / "kept", Path.home() / "hostile-was-here"
    kept.write_text("kept")
    files = importing(
        "import os, shutil",
        f"for act in (lambda: os.unlink({str(kept)!r}), lambda: open({str(kept)!r}, 'w'),",
        f"            lambda: open({str(home)!r}, 'w'), lambda: os.kill(1, 9),",
        f"            lambda: shutil.rmtree({str(kept.parent)!r})):",
        "    try: act()",
        "    except OSError: pass",
    )()
    report = checked(files, tmp_path, "I01", "I05", "T01")
    if jailed(report):
        assert kept.read_text() == "kept"
        assert not home.exists()
        assert statuses(report)["I05"] == "failed"


def test_the_network_is_out_of_reach(tmp_path: Path) -> None:
    files = environment(
        "        # made\n",
        "        import socket\n        socket.create_connection(('192.0.2.1', 80), 30)\n",
    )()
    report = checked(files, tmp_path, "I11", "T01")
    assert statuses(report) == {"I11": "failed", "T01": "undecided"}
    assert "Network is unreachable" in seen(report) or not jailed(report)


@pytest.mark.slow
@pytest.mark.parametrize(
    "call", ["os._exit(0)", "import ctypes; ctypes.string_at(0)", "raise SystemExit(0)"]
)
def test_a_factory_that_ends_its_process_is_a_failure(call: str, tmp_path: Path) -> None:
    report = checked(environment("        # made\n", f"        {call}\n")(), tmp_path)
    said = statuses(report)
    assert said["I11"] == "failed"
    assert {said[rule] for rule in ("T01", "T02", "H01", "R01")} == {"undecided"}
    assert report.exit_code == 1


def test_a_result_that_the_package_wrote_itself_is_read_strictly(tmp_path: Path) -> None:
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        '    open(sys.argv[2], \'w\').write(\'{"at": 7, "modules": [1], "plugins": null}\')',
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "I02", "I10", "T01")
    assert statuses(report)["I01"] == "failed"
    assert "passed" not in statuses(report).values()
    assert "the rule itself failed" not in seen(report)


@pytest.mark.parametrize("left", ["", '{"at": "", "modules": {}, "plugins": {}}'])
def test_an_import_that_ends_the_process_fails_even_if_it_ends_it_well(
    left: str, tmp_path: Path
) -> None:
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        f"    {left!r} and open(sys.argv[2], 'w').write({left!r})",
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "I02")
    assert statuses(report) == {"I01": "failed", "I02": "undecided"}


@pytest.mark.slow
def test_a_result_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text('{"at": "the secret", "modules": {}, "plugins": {}}')
    files = importing(
        "import os, sys",
        "if 'prime_core.check.observe' in sys.orig_argv:",
        "    os.path.exists(sys.argv[2]) and os.unlink(sys.argv[2])",
        f"    os.symlink({str(secret)!r}, sys.argv[2])",
        "    os._exit(0)",
    )()
    report = checked(files, tmp_path, "I01", "T01")
    assert statuses(report) == {"I01": "failed", "T01": "undecided"}
    assert "the secret" not in seen(report)


def test_a_list_of_ten_to_the_twelve_tasks_is_sampled(tmp_path: Path) -> None:
    files = environment(
        "        # tasks\n",
        "        whole = self._tasks\n"
        "        class Giant(list):\n"
        "            def __len__(self): return 10**12\n"
        "            def __getitem__(self, n): return whole[n % 40]\n"
        "        self._tasks = Giant()\n",
    )()
    report = checked(files, tmp_path, "I11", "D02")
    assert statuses(report) == {"I11": "passed", "D02": "failed"}


@pytest.mark.slow
def test_endless_tasks_end_at_the_time_limit(tmp_path: Path) -> None:
    files = environment(
        '        """All of them."""\n        return self._tasks',
        '        """All of them."""\n        import itertools\n'
        "        return list(itertools.cycle(self._tasks))",
    )()
    report = checked(files, tmp_path, limits=Limits(start_s=6.0))
    said = statuses(report)
    assert said["I11"] == "failed"
    assert said["T01"] == "undecided"


@pytest.mark.slow
def test_a_build_that_never_ends_is_no_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prime_core.check.staging.BUILD_LIMIT_S", 3.0)
    files = dict(GOOD)
    files["pyproject.toml"] = files["pyproject.toml"].replace(
        'build-backend = "hatchling.build"', 'build-backend = "backend"\nbackend-path = ["."]'
    )
    files["backend.py"] = "while True: pass\n"
    report = checked(files, tmp_path, "P06", "I01")
    assert statuses(report) == {"P06": "failed", "I01": "undecided"}


@pytest.mark.slow
def test_nothing_is_left_running_or_lying_about(tmp_path: Path) -> None:
    files = importing(
        "import subprocess",
        "subprocess.Popen(['sleep', '86399'], start_new_session=True)",
    )()
    report = checked(files, tmp_path, "I06", "T01")
    assert statuses(report)["I06"] == "failed"
    assert "sleep 86399" not in running() or not jailed(report)


def test_the_same_check_of_an_honest_package_passes(tmp_path: Path) -> None:
    report = checked(GOOD, tmp_path, *RULES)
    assert set(statuses(report).values()) == {"passed"}
