"""A config that can't work fails at once: nothing heavy is imported, and the fix is named."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from integration_support import environment, write_config

pytestmark = pytest.mark.integration

HEAVY = {"torch", "transformers", "vllm", "sympy", "pyarrow", "rich", "matplotlib"}

# Runs the command in its process, then says what it cost. The child is the short-lived process
# that checks the parameters of hosted plugins; a supervisor never imports those.
PROBE = """
import json, resource, sys
sys.argv = ["prime-core", "train", {config!r}]
from prime_core.cli.main import main
code = 0
try:
    main()
except SystemExit as end:
    code = end.code
cpu = {{}}
for name, who in (("own", resource.RUSAGE_SELF), ("children", resource.RUSAGE_CHILDREN)):
    used = resource.getrusage(who)
    cpu[name] = round(used.ru_utime + used.ru_stime, 3)
modules = sorted({{name.partition(".")[0] for name in sys.modules}})
print(json.dumps({{"code": code, "cpu_s": cpu, "modules": modules}}))
"""

MISTAKES = {
    "misspelt plugin": (
        'use = "arithmetic"',
        'use = "arithmetik"',
        ["arithmetik", "use 'arithmetic'"],
    ),
    "misspelt hosted parameter": (
        'kind = "addition"',
        'kidn = "addition"',
        ["kidn", "kind"],
    ),
    "misspelt key": ("group_size = 4", "groupsize = 4", ["groupsize", "group_size"]),
    "missing data": (
        'use = "arithmetic"\nwith = { kind = "addition", digits = 1, '
        'split = "train", test_share = 0.3 }',
        'use = "jsonl"\nwith = { url = "nowhere.jsonl" }',
        ["there is no file nowhere.jsonl", "check the path"],
    ),
    "missing file": ('path = "', 'path = "/nowhere', ["/nowhere", "model.path"]),
}


def fail(config: Path) -> tuple[dict, str]:
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(config=str(config))],
        capture_output=True,
        text=True,
        env=environment(),
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1]), done.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_its_place_and_fix_before_anything_heavy_loads(
    tiny_model: Path, tmp_path: Path, mistake: str
) -> None:
    config = write_config(tmp_path, tiny_model)
    good, bad, named = MISTAKES[mistake]
    text = config.read_text()
    assert good in text
    config.write_text(text.replace(good, bad, 1))
    # what stands in one table is told at the line of its key
    line = text[: text.index(good)].count("\n") + 1 + bad.count("\n")
    told, message = fail(config)
    print(f"{mistake}: {told['cpu_s']['own']} s of CPU, {told['cpu_s']['children']} s in children")
    assert told["code"] == 2
    assert HEAVY.isdisjoint(told["modules"]), HEAVY & set(told["modules"])
    assert "prime_env_arithmetic" not in told["modules"]
    assert f"config.toml:{line}" in message, message
    assert "fix:" in message
    for word in named:
        assert word in message, message
    assert not (tmp_path / "run").exists(), "a run that can't start claims no directory"


def test_all_mistakes_are_told_at_once(tiny_model: Path, tmp_path: Path) -> None:
    config = write_config(tmp_path, tiny_model)
    text = config.read_text()
    for name in ("misspelt plugin", "misspelt key", "missing file"):
        good, bad, _ = MISTAKES[name]
        text = text.replace(good, bad, 1)
    config.write_text(text)
    told, message = fail(config)
    print(f"three mistakes: {told['cpu_s']} s of CPU")
    assert "3 problems" in message
    for name in ("misspelt plugin", "misspelt key", "missing file"):
        assert MISTAKES[name][2][0] in message
