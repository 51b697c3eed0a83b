"""Installs from an index: verifies signatures and digests, then lets pip do its work.

Called by `prime-core install`. pip is given files that were verified, and nothing else of the
index; requirements that the index doesn't hold are pip's own business, from where it's configured.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import Requirement

from prime_core.api.errors import IntegrityError, RunError
from prime_core.publishing import layout
from prime_core.publishing.audit import check_wheel
from prime_core.publishing.installed import Installed, installed, note, source_digest
from prime_core.publishing.resolve import Policy, parse, resolve
from prime_core.publishing.source import Release, open_source, wheel_bytes

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """Where it's installed.

    Attributes:
        python: the interpreter; None for this one.
        target: a folder for `pip install --target`; None for the interpreter's own.
    """

    python: Path | None = None
    target: Path | None = None

    def installed(self) -> dict[str, Installed]:
        """What is there now."""
        return installed(self.python, self.target)


def install(
    text: str,
    url: str,
    policy: Policy,
    place: Place,
    *,
    locked: bool = False,
    dry_run: bool = False,
    pip_options: Sequence[str] = (),
    tell: Tell = lambda line: None,
) -> list[Release]:
    """Install a distribution of the index with those of its requirements that the index holds.

    Args:
        locked: hold pip to the versions that the check ran with.
        dry_run: verify, and install nothing.

    Raises:
        PrimeError: what stands against it; nothing is installed before all is verified.
    """
    requirement = parse(text)
    source = open_source(url)
    there = place.installed()
    chosen = resolve(source, requirement, policy, there)
    with tempfile.TemporaryDirectory(prefix="prime-core-install-") as folder:
        wheels: dict[str, Path] = {}
        for name, release in chosen.items():
            data = wheel_bytes(source, release)
            check_wheel(release, data)
            wheels[name] = Path(folder) / release.record.value.filename
            wheels[name].write_bytes(data)
            said = release.record.value
            tell(f"verified {name} {said.version}: {said.check.level}, by {release.record.signer}")
        if dry_run:
            return list(chosen.values())
        options = [*pip_options, *(_locks(chosen, Path(folder)) if locked else [])]
        root = layout.project(requirement.name)
        asked = [
            _asked(path, requirement if name == root else None) for name, path in wheels.items()
        ]
        _pip(place, [*options, *asked])
        _settle(place, chosen, wheels, pip_options)
    return list(chosen.values())


def _asked(wheel: Path, requirement: Requirement | None) -> str:
    """A wheel with the extras that were asked for; pip reads those of the others in metadata."""
    extras = ",".join(sorted(requirement.extras)) if requirement else ""
    return f"{wheel}[{extras}]" if extras else str(wheel)


def _locks(chosen: Mapping[str, Release], folder: Path) -> list[str]:
    """A constraints file with the versions that the checks ran with."""
    lines: dict[str, str] = {}
    for release in chosen.values():
        for each in release.record.value.dependencies:
            lines.setdefault(each.name, f"{each.name}=={each.version}\n")
    own = {"prime-core", *chosen}
    path = folder / "constraints.txt"
    path.write_text("".join(line for name, line in sorted(lines.items()) if name not in own))
    return ["--constraint", str(path)]


def _settle(
    place: Place, chosen: Mapping[str, Release], wheels: Mapping[str, Path], options: Sequence[str]
) -> None:
    """Make sure that what is installed is what was verified, and leave the records beside it."""
    there = place.installed()
    changed = [
        name
        for name, release in chosen.items()
        if name not in there or source_digest(there[name]) != release.record.value.source_sha256
    ]
    if changed:  # pip keeps what has the same version: an editable install, or changed files
        again = ["--force-reinstall", "--no-deps", *options]
        _pip(place, [*again, *(str(wheels[name]) for name in changed)])
        there = place.installed()
    for name, release in chosen.items():
        said = release.record.value
        if name not in there or source_digest(there[name]) != said.source_sha256:
            raise IntegrityError(
                f"what pip installed isn't {name} {said.version} as published",
                fix="remove what hides it on sys.path (an editable install?) and try again",
            )
        note(there[name], release.raw)


def _pip(place: Place, arguments: Sequence[str]) -> None:
    command = [sys.executable, "-m", "pip"]
    command += ["--python", str(place.python)] if place.python else []
    command += ["--disable-pip-version-check", "install", "--quiet"]
    command += ["--upgrade", "--target", str(place.target)] if place.target else []
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    if done.returncode != 0:
        raise RunError(
            f"pip failed:\n{(done.stderr or done.stdout).strip()[-3000:]}",
            fix="correct what it says; what was verified is fine",
        )
