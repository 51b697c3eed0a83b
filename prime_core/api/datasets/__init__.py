"""Tasks from files: by URL or hub id, through a column mapping, pinned by digest.

Used by environments whose tasks lie in files; importing it loads neither fsspec nor pyarrow.
"""

from prime_core.api.datasets.digest import task_json, tasks_digest
from prime_core.api.datasets.literals import read_mapping
from prime_core.api.datasets.source import Column, DatasetSource
from prime_core.api.datasets.split import Split, SplitName, in_split
from prime_core.api.datasets.table import TaskTable, load_tasks

__all__ = [
    "Column",
    "DatasetSource",
    "Split",
    "SplitName",
    "TaskTable",
    "in_split",
    "load_tasks",
    "read_mapping",
    "task_json",
    "tasks_digest",
]
