"""P11: the source has tests, and one of them inherits a contract."""

from __future__ import annotations

import re

from prime_core.check.distribution import read_source, source_files
from prime_core.check.rule import Finding, Result, Rule, failed, nothing_to_see, passed
from prime_core.check.subject import Subject

KINDS_WITH_CONTRACT = frozenset(
    {"environment", "verifier", "reward", "length_budget", "data_filter", "inference_engine",
     "tracker", "loss", "advantage", "sanity_check"}
)  # fmt: skip
CONTRACT = re.compile(r"\bprime_core\.testing\b")


def examine(subject: Subject) -> Result:
    """Look for test files; they aren't run here, the author's CI does."""
    source = subject.distribution.source
    if source is None:
        return nothing_to_see("a wheel has no tests")
    tests = [
        path for path in source_files(source, ".py")
        if path.name.startswith("test_") or path.name.endswith("_test.py")
    ]  # fmt: skip
    if not tests:
        return failed(Finding("there is no test file"))
    contracts = any(entry.kind in KINDS_WITH_CONTRACT for entry in subject.distribution.entries)
    if contracts and not any(CONTRACT.search(read_source(path)) for path in tests):
        return failed(
            Finding("no test uses a contract of prime_core.testing", path="tests", line=1)
        )
    return passed(files=str(len(tests)))


RULE = Rule(
    id="P11",
    name="tests",
    title="The source has tests, and one of them inherits a contract of prime_core.testing",
    level="silver",
    cost="static",
    why="A reward that nobody tests is changed by accident, and every model trained on it with it.",
    fix="add tests/test_contract.py with a class that inherits the contract of the plugin's kind",
    bad="tests/ is empty",
    good="class TestWords(EnvironmentContract):\n    @pytest.fixture\n"
    "    def make_environment(self, tmp_path):\n"
    "        return lambda: make(WordsParams(), OfflineContext(tmp_path))",
    examine=examine,
)
