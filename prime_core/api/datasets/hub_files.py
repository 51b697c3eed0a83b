"""Files of data sets on the Hugging Face hub, by commit.

Called for `hub://ORG/NAME[/FILE]` URLs; huggingface_hub is optional and keeps its own cache, below
ours.
"""

from __future__ import annotations

from pathlib import Path

from prime_core.api.datasets.source import SUFFIXES
from prime_core.api.errors import DatasetError
from prime_core.api.specs import Context


def fetch_from_hub(url: str, revision: str, context: Context) -> Path:
    """The local copy of a file of a hub data set.

    A URL without FILE stands for the one file of tasks that the data set holds.

    Raises:
        DatasetError: huggingface_hub is missing, the data set, file or commit doesn't exist, it
            can't be reached, or offline and not cached.
    """
    organisation, _, rest = url.removeprefix("hub://").partition("/")
    name, _, file = rest.partition("/")
    if not organisation or not name:
        raise DatasetError("a hub data set has two names", where=url, fix="write hub://ORG/NAME")
    try:
        import httpx
        import huggingface_hub
    except ImportError as error:
        raise DatasetError(
            "hub data sets need huggingface_hub",
            where=url,
            fix="pip install huggingface_hub, or download the file and name its path",
        ) from error
    repository = f"{organisation}/{name}"
    try:
        if not file:
            file = _only_file(repository, revision, url, context)
        return Path(
            huggingface_hub.hf_hub_download(
                repository,
                file,
                repo_type="dataset",
                revision=revision,
                cache_dir=context.cache_dir / "hub",
                local_files_only=context.offline,
            )
        )
    except (OSError, ValueError, httpx.HTTPError) as error:
        offline = ", and this run is offline" if context.offline else ""
        raise DatasetError(
            f"the file isn't in the cache or can't be fetched{offline}: {error}",
            where=f"{url} at {revision}",
            fix="check name, revision and network; offline, load it once online first",
        ) from error


def _only_file(repository: str, revision: str, url: str, context: Context) -> str:
    import huggingface_hub

    if context.offline:
        raise DatasetError(
            "offline, a hub data set's files can't be listed",
            where=url,
            fix=f"name the file: {url.rstrip('/')}/FILE",
        )
    listed = huggingface_hub.HfApi().list_repo_files(
        repository, repo_type="dataset", revision=revision
    )
    files = [file for file in listed if file.lower().endswith(SUFFIXES)]
    if len(files) != 1:
        shown = ", ".join(files[:10]) or "none"
        raise DatasetError(
            f"the data set holds {len(files)} files of tasks: {shown}",
            where=url,
            fix=f"name one: {url.rstrip('/')}/FILE",
        )
    return str(files[0])
