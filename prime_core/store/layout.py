"""Where everything of a run lies: pure functions from what a thing is to its object path.

Every process that reads or writes the store takes its paths from here. A path is relative to the
store's root, uses `/`, and is accepted by `check_path`.
"""

from __future__ import annotations

import re

from prime_core.api.errors import FormatError, StoreError

RUN = "run.toml"
LOCK = "lock.json"
MODEL = "model"
STEPS = "steps"
POLICIES = "policies"
TASKS = "tasks"
CHECKPOINTS = "checkpoints"
OUTCOMES = "outcomes"
PROFILES = "profiles"
# Local and mutable: never object paths, always below the run directory.
LOGS = "logs"
METRICS = "metrics.jsonl"
TRACE = "trace"
KEYS = "keys"
SHARDCAST = "shardcast"
VALIDATION = "validation"

_SEGMENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._=+-]{0,199}")
_NODE = re.compile(r"[a-z0-9-]{1,64}")
_LABEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_MEMBER = re.compile(r"([a-z0-9-]{1,64})-(\d{5,18})(?:\.json|\.parquet|\.sig\.json)")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_NUMBERED = re.compile(r"\d{6,18}")
_LARGEST = 2**31 - 1  # steps, versions and indices are int32 in records and rollouts


def check_path(path: str) -> str:
    """Return the path if it may name an object.

    A segment starts with a letter, a digit or `_`, so that neither `..` nor a temporary name (which
    starts with a dot) can be one.

    Raises:
        StoreError: an absolute path, an empty segment, `..`, or a character outside
            `[A-Za-z0-9._=+-]`.
    """
    if not path or not all(_SEGMENT.fullmatch(part) for part in path.split("/")):
        raise StoreError(
            f"{path!r} can't name an object",
            fix="use a relative path of [A-Za-z0-9._=+-] segments that don't start with a dot",
        )
    return path


def check_node(node: str) -> str:
    """Return the node name if it is one: `[a-z0-9-]{1,64}`; FormatError otherwise."""
    if not _NODE.fullmatch(node):
        raise FormatError(f"{node!r} is no node name", fix="use 1 to 64 characters of [a-z0-9-]")
    return node


def step_dir(step: int) -> str:
    """The directory of a rollout step."""
    return f"{STEPS}/{_count(step):06d}"


def dispatches_dir(step: int) -> str:
    """The directory of a step's dispatches."""
    return f"{step_dir(step)}/dispatches"


def submissions_dir(step: int) -> str:
    """The directory of a step's submissions and their signatures."""
    return f"{step_dir(step)}/submissions"


def receipts_dir(step: int) -> str:
    """The directory of a step's receipts."""
    return f"{step_dir(step)}/receipts"


def verdicts_dir(step: int) -> str:
    """The directory of a step's verdicts."""
    return f"{step_dir(step)}/verdicts"


def dispatch_path(step: int, node: str, n: int) -> str:
    """What a node writes before it generates submission n of a step."""
    return f"{dispatches_dir(step)}/{_member(node, n)}.json"


def submission_path(step: int, node: str, n: int) -> str:
    """The Parquet file of submission n."""
    return f"{submissions_dir(step)}/{_member(node, n)}.parquet"


def submission_signature_path(step: int, node: str, n: int) -> str:
    """The signed statement beside submission n."""
    return f"{submissions_dir(step)}/{_member(node, n)}.sig.json"


def receipt_path(step: int, node: str, n: int) -> str:
    """What the intake decided about submission n."""
    return f"{receipts_dir(step)}/{_member(node, n)}.json"


def verdict_path(step: int, node: str, n: int, sha256: str) -> str:
    """What a validator decided about bytes that submission n had."""
    if not _SHA256.fullmatch(sha256):
        raise FormatError(f"{sha256!r} is no SHA-256", fix="use 64 lower-case hexadecimal digits")
    return f"{verdicts_dir(step)}/{_member(node, n)}-{sha256}.json"


def closed_path(step: int) -> str:
    """The batch of a closed step, in training order."""
    return f"{step_dir(step)}/closed.json"


def policy_dir(version: int) -> str:
    """The directory of a policy version."""
    return f"{POLICIES}/{_count(version):06d}"


def policy_header_path(version: int) -> str:
    """The signed header of a policy version."""
    return f"{policy_dir(version)}/header.json"


def policy_shard_path(version: int, index: int) -> str:
    """The bytes of one shard."""
    return f"{policy_dir(version)}/shard-{_count(index):05d}.bin"


def policy_weights_path(version: int) -> str:
    """The whole weights file, where a directory store holds it instead of the shards' bytes."""
    return f"{policy_dir(version)}/weights.safetensors"


def policy_line_path(version: int, index: int) -> str:
    """The signed, hash-chained line of one shard; visible only after its bytes."""
    return f"{policy_dir(version)}/shard-{_count(index):05d}.json"


def policy_seal_path(version: int) -> str:
    """The signed seal; a policy version exists for readers once it does."""
    return f"{policy_dir(version)}/seal.json"


def client_dir(node: str) -> str:
    """Local: where the client beside a worker puts policy versions, laid out as in a store."""
    return f"{SHARDCAST}/client-{check_node(node)}"


def outcomes_path(seq: int) -> str:
    """Part `seq` of the outcome log."""
    return f"{OUTCOMES}/{_count(seq):08d}.parquet"


def tasks_path(label: str) -> str:
    """The filtered task list of the environment with this label."""
    if not _LABEL.fullmatch(label):
        raise StoreError(
            f"environment label {label!r} can't name a file",
            fix="set the environment's name to up to 100 characters of [A-Za-z0-9._-]",
        )
    return f"{TASKS}/{label}.json"


def checkpoint_dir(step: int) -> str:
    """The directory of the checkpoint taken before this step trains."""
    return f"{CHECKPOINTS}/{_count(step):06d}"


def parse_member(name: str) -> tuple[str, int]:
    """The (node, n) of a dispatch, submission, signature or receipt file name; FormatError."""
    found = _MEMBER.fullmatch(name)
    if found:
        node, n = found[1], int(found[2])
        if f"{n:05d}" == found[2] and n <= _LARGEST:
            return node, n
    raise FormatError(f"{name!r} isn't named <node>-<n>", fix="remove the file from the store")


def parse_numbered(name: str) -> int | None:
    """The number of a step, version or checkpoint directory; None for any other name."""
    if not _NUMBERED.fullmatch(name):
        return None
    number = int(name)
    return number if f"{number:06d}" == name and number <= _LARGEST else None


def _member(node: str, n: int) -> str:
    return f"{check_node(node)}-{_count(n):05d}"


def _count(value: int) -> int:
    assert value >= 0, value
    return value
