"""Publishes a version: build, check, sign, add to the index, build its pages.

Called by `prime-core publish`. Nothing reaches the index before the check passed, and nothing is
signed that wasn't built here from the project's own files.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from prime_core.api.errors import FormatError, PrimeError
from prime_core.publishing.card import make_card
from prime_core.publishing.checking import Checked, run_check, unchecked
from prime_core.publishing.dependencies import closure
from prime_core.publishing.index import Index, Upload
from prime_core.publishing.layout import project as normalised
from prime_core.publishing.layout import version_key
from prime_core.publishing.publication import Data, Dataset, Plugin, Publication
from prime_core.publishing.simple import as_json
from prime_core.publishing.wheel import Wheel, build, read_wheel
from prime_core.signing import Signer

Tell = Callable[[str], None]
Checker = Callable[[Path, str, Wheel], Checked]


@dataclass(frozen=True, slots=True)
class Published:
    """What was published.

    Attributes:
        problems: objects of the index that its pages had to leave out.
    """

    record: Publication
    publisher: str
    problems: tuple[PrimeError, ...]


def default_key(variables: Mapping[str, str] = os.environ) -> Path:
    """prime-core/publisher.key under XDG_CONFIG_HOME, else under ~/.config."""
    base = variables.get("XDG_CONFIG_HOME")
    return (Path(base) if base else Path.home() / ".config") / "prime-core" / "publisher.key"


def publisher(path: Path, tell: Tell) -> Signer:
    """The publisher's key; drawn and written where there is none yet.

    Raises:
        StoreError, FormatError: as `Signer`.
    """
    if path.exists():
        return Signer.load(path)
    signer = Signer.create(path)
    tell(f"made the publisher's key {path}, address {signer.address}; keep a copy of it")
    return signer


def publish(
    project: Path,
    url: str,
    *,
    level: str,
    signer: Signer,
    profile: Path | None = None,
    checker: Checker = run_check,
    tell: Tell = lambda line: None,
) -> Published:
    """Publish a project's current version.

    Args:
        project: its folder.
        url: of the index; a folder or object store.
        level: the check's level; "none" publishes without a check, and says so for ever.
        profile: what `prime-core profile` wrote, for the catalogue.
        checker: what checks; tests give their own.
        tell: told what happens.

    Raises:
        PrimeError: anything that stands against it; the index is then as it was.
    """
    index = Index(url)
    with tempfile.TemporaryDirectory(prefix="prime-core-publish-") as name:
        scratch = Path(name)
        path = build(project, scratch / "wheel")
        data = path.read_bytes()
        wheel = read_wheel(data, path.name)
        if not wheel.plugins:
            raise FormatError(
                "it declares no plugin",
                where=str(project),
                fix='add entry points of group "prime_core" to pyproject.toml',
            )
        version_key(wheel.version)
        tell(f"built {path.name} twice, equal: {wheel.sha256}")
        index.check_free(normalised(wheel.name), wheel.version)
        checked = unchecked() if level == "none" else checker(project, level, wheel)
        tell(f"checked: {checked.check.level}, {checked.check.passed} rules passed")
        made, datasets = make_card(wheel, path, project, scratch, profile)
    card = as_json(made)
    record = _record(wheel, checked, card, datasets)
    blobs = (
        (wheel.sha256, wheel.filename, data),
        (wheel.sha256, f"{wheel.filename}.metadata", wheel.metadata),
        (record.report_sha256, "report.json", checked.report),
        (record.card_sha256, "card.json", card),
    )
    index.add(Upload(record.name, record.version, record.sign(signer), blobs), signer)
    tell(f"signed by {signer.address}")
    return Published(record, signer.address, tuple(index.build()))


def _record(
    wheel: Wheel, checked: Checked, card: bytes, datasets: tuple[Dataset, ...]
) -> Publication:
    return Publication(
        name=normalised(wheel.name),
        version=wheel.version,
        filename=wheel.filename,
        sha256=wheel.sha256,
        size=wheel.size,
        metadata_sha256=_sha256(wheel.metadata),
        source_sha256=wheel.source_sha256,
        report_sha256=_sha256(checked.report),
        card_sha256=_sha256(card),
        requires_python=wheel.requires_python,
        requires=wheel.requires,
        summary=wheel.summary[:2000],
        licence=wheel.licence[:2000],
        plugins=tuple(Plugin(kind=k, name=n, module=m) for k, n, m in wheel.plugins),
        data=tuple(Data(path=path, sha256=digest) for path, digest in wheel.data),
        datasets=datasets,
        dependencies=closure(wheel.requires),
        check=checked.check,
        published_at=int(time.time()),
    )


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
