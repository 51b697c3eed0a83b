"""Which distributions a change concerns: files are mapped to the distributions that hold them.

Called by `prime-core check --changed-since` and `--files`, which pull requests and commit hooks
use. Invariant: a file belongs to the nearest folder above it that has a pyproject.toml.
"""

from __future__ import annotations

import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

from prime_core.api import FormatError, RunError
from prime_core.check.distribution import SOURCE_LIMIT
from prime_core.check.plain_files import read_plain

GROUP = "prime_core"
ENGINE = "prime-core"  # its own distribution has entry points too, and is no plugin distribution


def changed_files(root: Path, since: str) -> list[Path]:
    """Files below `root` that differ from the last commit in common with `since`.

    Committed or not: what is staged, edited and not yet tracked counts too. A renamed file is two.

    Raises:
        RunError: `root` isn't in a git repository, or `since` names no commit.
    """
    top = Path(_git(root, "rev-parse", "--show-toplevel").removesuffix("\n"))
    reference = f"{since}^{{commit}}"
    commit = _git(root, "rev-parse", "--verify", "--end-of-options", reference).strip()
    base = _git(root, "merge-base", commit, "HEAD").strip()
    said = _git(root, "diff", "--name-only", "--no-renames", "-z", base, "--", ".")
    fresh = _git(root, "ls-files", "--others", "--exclude-standard", "--full-name", "-z", "--", ".")
    return sorted({top / name for name in f"{said}{fresh}".split("\0") if name})


def distributions_of(files: Iterable[Path]) -> list[Path]:
    """Folders of the plugin distributions that hold these files, each once, in order.

    A deleted file counts for the folder that it was in; a deleted distribution is none any more.
    """
    folders = {found for file in files if (found := _holder(file)) is not None}
    return sorted(folder for folder in folders if is_plugin_distribution(folder))


def is_plugin_distribution(folder: Path) -> bool:
    """Whether a folder's pyproject.toml declares plugins; one that can't be read counts as such,
    so that the check says what is wrong with it."""
    try:
        text = read_plain(folder / "pyproject.toml", SOURCE_LIMIT).decode("utf-8")
        project = tomllib.loads(text).get("project", {})
        return GROUP in project.get("entry-points", {}) and project.get("name") != ENGINE
    except (OSError, FormatError, ValueError, RecursionError, AttributeError, TypeError):
        return (folder / "checks.toml").is_file()


def _holder(file: Path) -> Path | None:
    for folder in file.absolute().parents:
        if (folder / "pyproject.toml").is_file():
            return folder
        if (folder / ".git").exists():
            return None
    return None


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *arguments],
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="surrogateescape",
        )
    except FileNotFoundError as error:
        raise RunError("git isn't installed", where=str(root), fix="install git") from error
    if done.returncode == 0:
        return done.stdout
    raise RunError(
        f"git {arguments[0]} failed: {done.stderr.strip() or 'there is no commit in common'}",
        where=str(root),
        fix="name a commit that this clone has; CI clones need their history (fetch-depth: 0)",
    )
