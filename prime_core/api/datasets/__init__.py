"""Tasks from files: by URL or hub id, through a column mapping, pinned by digest."""

from prime_core.api.datasets.digest import task_json, tasks_digest
from prime_core.api.datasets.split import Split, SplitName, in_split

__all__ = ["Split", "SplitName", "in_split", "task_json", "tasks_digest"]
