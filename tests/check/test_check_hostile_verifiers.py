"""Hostile verifiers: what fights its host, its checker or its pipes is never paid for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from check_fixtures import importing, verifying
from hostile_support import checked, seen, statuses

pytestmark = pytest.mark.integration


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("os._exit(0)", "crash"),
        ("os.closerange(0, 64); os._exit(0)", "crash"),
        ("while True: pass", "timeout"),
        ("raise SystemExit(0)", "exception"),
        ("return Score(float('nan'))", "value"),
        ("return 'all is well'", "value"),
    ],
)
def test_a_verifier_that_fights_is_an_error_and_never_paid(
    line: str, kind: str, tmp_path: Path
) -> None:
    files = verifying("if answer == 'banana' and task.id == 'word-0':", f"    {line}")()
    report = checked(files, tmp_path, "H01", "R01", "R02", "R04")
    said = statuses(report)
    assert said["H01"] == "passed"
    rule = {"timeout": "R02", "value": "R04"}.get(kind, "R01")
    assert {each for each, status in said.items() if status == "failed"} == {rule}


@pytest.mark.slow
def test_a_verifier_that_always_ends_its_process_is_given_up(tmp_path: Path) -> None:
    report = checked(verifying("os._exit(0)")(), tmp_path, "T01", "H01", "R01")
    assert statuses(report) == {"T01": "failed", "H01": "undecided", "R01": "failed"}
    assert "so many completions end its process that it was given up: crash" in seen(report)


@pytest.mark.slow
def test_answers_written_into_the_result_pipe_are_no_scores(tmp_path: Path) -> None:
    files = verifying(
        "import json",
        "score = {'value': 1.0, 'status': 'scored'}",
        "said = json.dumps({'id': 1, 'item': 0, 'ok': score}).encode()",
        "for number in map(int, os.listdir('/proc/self/fd')):",
        "    try: os.write(number, len(said).to_bytes(4, 'big') + said)",
        "    except OSError: pass",
    )()
    report = checked(files, tmp_path, "T01", "T02")
    assert statuses(report) == {"T01": "failed", "T02": "undecided"}
    assert "the host sent an answer to call 1 unasked" in seen(report)


def test_a_changed_checker_changes_its_own_process_alone(tmp_path: Path) -> None:
    files = importing(
        "import prime_core.check.bounds, prime_core.check.paying, prime_core.hosting.wire",
        "prime_core.check.bounds.exceeds = lambda *a, **k: False",
        "prime_core.check.paying.overpaid = lambda *a, **k: None",
        "prime_core.check.paying.top_paid = lambda *a, **k: True",
    )()
    path = "prime_env_words/environment.py"
    files[path] = files[path].replace("# verify", "return Score(1.0)")
    report = checked(files, tmp_path, "T01", "T02", "H01")
    assert statuses(report) == {"T01": "passed", "T02": "failed", "H01": "failed"}
