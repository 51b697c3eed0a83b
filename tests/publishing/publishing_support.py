"""Wheels and indexes made in memory: what publishing tests need without a build."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any

from prime_core.publishing.index import Index, Upload
from prime_core.publishing.publication import Check, Data, Dependency, Plugin, Publication
from prime_core.publishing.wheel import read_wheel
from prime_core.signing import Signer

ALICE = Signer(bytes([1] * 32))
MALLORY = Signer(bytes([2] * 32))

REPORT: dict[str, Any] = {
    "level": "silver",
    "passed": True,
    "checker": "prime-core 0.1.0",
    "rules": [
        {
            "id": "R03",
            "name": "task-blind",
            "title": "No policy that ignores the task earns more than the chance level",
            "level": "bronze",
            "status": "warned",
            "findings": [
                {
                    "seen": "a shotgun of all answers gets 0.5 where 0.25 is declared",
                    "exploit": {
                        "index": 3,
                        "task": "<script>alert(1)</script>",
                        "text": "Answer: 1\nAnswer: 2 <b>bold</b>",
                        "value": 0.5,
                        "status": "scored",
                    },
                }
            ],
            "measures": {"false_accept": "0.5 (0.2 to 0.8)"},
        },
        {"id": "P01", "title": "The wheel builds", "level": "bronze", "status": "passed"},
        {"id": "X02", "title": "Padding", "level": "silver", "status": "exempt", "exempt": "none"},
    ],
}


def card(name: str = "sums", tasks: int = 1200) -> dict[str, Any]:
    """What the catalogue shows of an environment."""
    long = "A train has 9 coaches with 46 seats each. How many seats does it have in all?"
    sample = {
        "id": "train",
        "prompt": [["user", f"{long}\nEnd with a line of its own: Answer: NUMBER"]],
        "completions": [
            {"policy": "gold", "text": "Answer: 414", "value": 1.0, "status": "scored"},
            {"policy": "wrong", "text": "Answer: 420", "value": 0.0, "status": "scored"},
        ],
    }
    return {
        "format": "prime-core/card/1",
        "readme": f"# {name}\n\n<img src=x onerror=alert(1)>\n",
        "environments": [
            {
                "name": name,
                "params": {},
                "tasks": tasks,
                "dataset_digest": "ab" * 32,
                "licence": "Apache-2.0",
                "score_range": [0.0, 1.0],
                "chance_level": 0.083,
                "deterministic": True,
                "needs": [],
                "multi_turn": False,
                "verifier": "AnswerVerifier",
                "measured": 64,
                "samples": [sample, {**sample, "id": "boxes & eggs"}],
                "distributions": [
                    {"policy": "gold", "values": [[1.0, 64]], "without_value": {}},
                    {"policy": "wrong", "values": [[0.0, 60], [0.5, 4]], "without_value": {}},
                    {"policy": "empty", "values": [[0.0, 61]], "without_value": {"error": 3}},
                    {"policy": "echo", "values": [[0.0, 64]], "without_value": {}},
                ],
            }
        ],
        "profile": {
            "model": "cd" * 32,
            "environment": name,
            "dataset_digest": "ab" * 32,
            "attempts": 8,
            "tasks": 200,
            "histogram": [[k, [40, 20, 22, 25, 31, 20, 16, 14, 12][k]] for k in range(9)],
            "signal": 148,
        },
    }


def tiny_wheel(
    name: str,
    version: str = "1.0",
    *,
    body: str = "VALUE = 1\n",
    requires: tuple[str, ...] = (),
    kind: str = "environment",
    files: dict[str, str] | None = None,
    record: str | None = None,
) -> tuple[str, bytes]:
    """File name and bytes of a wheel with one module."""
    module = name.replace("-", "_")
    info = f"{module}-{version}.dist-info"
    lines = "".join(f"Requires-Dist: {line}\n" for line in requires)
    extras = sorted({line.split("'")[1] for line in requires if "extra ==" in line})
    lines += "".join(f"Provides-Extra: {extra}\n" for extra in extras)
    contents = {
        f"{module}/__init__.py": body,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        f"Summary: The {kind} of {name}\nLicense-Expression: MIT\n{lines}\n# {name}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[prime_core]\n{kind}.{module} = {module}\n",
        **(files or {}),
    }
    rows = []
    for path, text in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        rows.append(f"{path},sha256={digest.decode()},{len(text.encode())}\n")
    own = f"{info}/RECORD"
    contents[own] = "".join([*rows, f"{own},,\n"]) if record is None else record
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        for path, text in contents.items():
            made.writestr(zipfile.ZipInfo(path), text)
    return f"{module}-{version}-py3-none-any.whl", archive.getvalue()


def as_bytes(value: object) -> bytes:
    return json.dumps(value).encode()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def upload(
    name: str,
    version: str = "1.0",
    signer: Signer = ALICE,
    *,
    level: str = "bronze",
    shown: dict[str, Any] | None = None,
    change: dict[str, Any] | None = None,
    dependencies: tuple[Dependency, ...] = (),
    **wheel: Any,
) -> Upload:
    """A version ready to be added; `change` replaces fields of its record."""
    filename, data = tiny_wheel(name, version, **wheel)
    read = read_wheel(data, filename)
    report, page = as_bytes({**REPORT, "level": level}), as_bytes(shown or card(name))
    fields: dict[str, Any] = {
        "name": name,
        "version": read.version,
        "filename": filename,
        "sha256": read.sha256,
        "size": read.size,
        "metadata_sha256": digest(read.metadata),
        "source_sha256": read.source_sha256,
        "report_sha256": digest(report),
        "card_sha256": digest(page),
        "requires_python": read.requires_python,
        "requires": read.requires,
        "summary": read.summary,
        "licence": read.licence,
        "plugins": tuple(Plugin(kind=k, name=n, module=m) for k, n, m in read.plugins),
        "data": tuple(Data(path=path, sha256=sha256) for path, sha256 in read.data),
        "datasets": (),
        "dependencies": dependencies,
        "check": Check(level=level, checker="prime-core 0.1.0", passed=2, exempt=("X02",)),
        "published_at": 1_790_000_000,
        **(change or {}),
    }
    record = Publication(**fields).sign(signer)
    blobs = (
        (read.sha256, filename, data),
        (read.sha256, f"{filename}.metadata", read.metadata),
        (digest(report), "report.json", report),
        (digest(page), "card.json", page),
    )
    return Upload(name, read.version, record, blobs)


def add(index: Index, name: str, version: str = "1.0", signer: Signer = ALICE, **more: Any) -> None:
    """Publish a tiny wheel and build the pages."""
    index.add(upload(name, version, signer, **more), signer)
    index.build()


def overwrite(index: Path, path: str, data: bytes) -> None:
    """What only somebody with write access to the index's disk can do."""
    place = index / path
    place.unlink()
    place.write_bytes(data)
