"""One data set through the ladder, and every completion that a finding shows scored once more.

`benchmarks/third_party_check.py` calls it for each. Invariant: a row says what one check saw, and a
finding counts as reproduced only where `prime-core score` gave the same score by itself.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from prime_core.check.checking import Order, check
from prime_core.check.outcome import Report
from prime_core.check.rule import Exploit
from prime_core.check.text_format import printable
from third_party.adapter import write_adapter

# Scores of these families are of the completion alone; those of N differ between processes.
SCORED_FAMILIES = "DTHRL"
SEEDS = ("0", "1", "4242")


def datasets() -> list[str]:
    """Every data set that reasoning-gym makes without further arguments."""
    from reasoning_gym.factory import DATASETS

    return sorted(name for name in DATASETS if name != "composite")  # a mixture of the others


def module_of(dataset: str) -> str:
    """The module that defines a data set; "" where it needs the whole library."""
    from reasoning_gym.factory import DATASETS

    return str(DATASETS[dataset][0].__module__)


def check_dataset(dataset: str, level: str = "silver") -> dict[str, Any]:
    """Check one data set and reproduce what was found; a row of the table.

    Args:
        dataset: its name; `NAME:library` lets the library's own function find the marked answer.
    """
    with TemporaryDirectory(prefix="third-party-") as scratch:
        name, _, marks = dataset.partition(":")
        folder = write_adapter(name, module_of(name), Path(scratch) / "gym", marks or "plain")
        started, cpu = time.monotonic(), cpu_s()
        report = check(Order(str(folder), level=level))  # type: ignore[arg-type]
        row: dict[str, Any] = {
            "dataset": dataset,
            "reached": report.reached,
            "checker": dict(report.versions),
            "isolation": report.isolation.partition(":")[0],
            "cpu_s": round(cpu_s() - cpu, 1),
            "wall_s": round(time.monotonic() - started, 1),
            "undecided": {
                each.rule.id: each.reason for each in report.outcomes if each.status == "undecided"
            },
        }
        row["failures"] = failures(report, name, installed(folder))
        return row


def failures(report: Report, dataset: str, site: Path) -> list[dict[str, Any]]:
    """The failed rules with their findings, and whether a second look saw each of these.

    Completions are scored by `prime-core score`; that tasks differ between hash seeds is seen by
    hashing the data set's questions; `reproduced` is None where there is nothing to look at.
    """
    failed = [each for each in report.outcomes if each.status == "failed"]
    exploits = [
        finding.exploit
        for outcome in failed
        for finding in outcome.findings
        if finding.exploit is not None and outcome.rule.id[0] in SCORED_FAMILIES
    ]
    scores = iter(score(report, exploits, site))
    rows = []
    for outcome in failed:
        findings = []
        for finding in outcome.findings:
            shown: dict[str, Any] = {"seen": finding.seen, "reproduced": None}
            exploit = finding.exploit
            if exploit is not None:
                shown |= described(exploit)
            if outcome.rule.id == "N01":
                shown["reproduced"] = len({fingerprint(dataset, seed) for seed in SEEDS}) > 1
            elif exploit is not None and outcome.rule.id[0] in SCORED_FAMILIES:
                shown["reproduced"] = same(exploit, next(scores))
            findings.append(shown)
        rows.append({"rule": outcome.rule.id, "name": outcome.rule.name, "findings": findings})
    return rows


def described(exploit: Exploit) -> dict[str, Any]:
    """What a row keeps of a completion."""
    return {
        "index": exploit.index,
        "completion": exploit.recipe or printable(exploit.text, 300),
        "value": exploit.value,
        "status": exploit.status,
        "detail": exploit.detail[:200],
    }


def same(exploit: Exploit, found: Mapping[str, Any]) -> bool:
    """The second score says what the check's said: the same value, or the same sort of error."""
    if exploit.value is None:
        kind = json.loads(found["evidence"]).get("kind")
        return found["value"] is None and kind == exploit.detail.partition(":")[0]
    return (found["value"], found["status"]) == (exploit.value, exploit.status)


def score(report: Report, exploits: Sequence[Exploit], site: Path) -> list[Mapping[str, Any]]:
    """What `prime-core score` says of the completions, in order."""
    if not exploits:
        return []
    import pyarrow.parquet as pq

    file, out = site / "completions.jsonl", site / "scores"
    rows = [json.dumps({"index": each.index, "completion": each.text}) for each in exploits]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    words = list(report.environments["environment.gym"])
    if "--package" in words:  # it scores one completion; `site` has it installed for a whole file
        at = words.index("--package")
        del words[at : at + 2]
    options = ["--workers", "1", "--time-limit", f"{report.item_s:g}", "--out", str(out)]
    command = [sys.executable, "-m", "prime_core", "score", *words, "--completions", str(file)]
    done = subprocess.run(
        [*command, *options],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not (out / "samples.parquet").is_file():
        raise RuntimeError(f"prime-core score failed: {(done.stdout + done.stderr)[-1000:]}")
    found: list[Mapping[str, Any]] = pq.read_table(out / "samples.parquet").to_pylist()
    return sorted(found, key=lambda row: int(row["row"]))


def installed(folder: Path) -> Path:
    """The source as an installation: beside it, the metadata that the hub reads."""
    info = folder / "prime_env_gym-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: prime-env-gym\nVersion: 0.1.0\n"
        "Requires-Dist: prime-core>=0.1,<1\n",
        encoding="utf-8",
    )
    (info / "entry_points.txt").write_text(
        "[prime_core]\nenvironment.gym = prime_env_gym\n", encoding="utf-8"
    )
    return folder


FINGERPRINT = """
import hashlib, sys
import reasoning_gym
data = reasoning_gym.create_dataset(sys.argv[1], size=160, seed=1234)
items = [(data[n]["question"], data[n]["answer"]) for n in range(40)]
print(hashlib.sha256(repr(items).encode()).hexdigest())
"""


def fingerprint(dataset: str, seed: str) -> str:
    """A digest of a data set's questions and answers, in a process with this hash seed."""
    done = subprocess.run(
        [sys.executable, "-c", FINGERPRINT, dataset.partition(":")[0]],
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def cpu_s() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
