"""What the checks of one file share: the file, its facts, and everything computed about it once.

Made by `judging` for each file; implements `prime_core.api.CheckContext`. The seed of its draws is
fixed by the validator's key and the file's SHA-256, so that no node can know it beforehand.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from prime_core.api import (
    AssignedGroup,
    FormatError,
    IntegrityError,
    NodeFacts,
    ProofChunk,
    ProofReport,
    Rescored,
    RowPrefill,
    RunFacts,
    Statement,
    SubmissionView,
)
from prime_core.assignment import SeededRng
from prime_core.store.submission import Submission
from prime_core.validation.recompute import Computed, judged

if TYPE_CHECKING:
    from prime_core.engines.planning import PlannedGroup
    from prime_core.store.counter import StepRules
    from prime_core.validation.reading import Reader
    from prime_core.validation.recompute import Recomputer

READ_LIMIT_S = 60.0  # where no check `schema` sets another
READ_LIMIT_MB = 2048


@dataclass(frozen=True)
class Surroundings:
    """What a context needs besides its file.

    Attributes:
        statement: reads the verified statement of the file; None where there is none.
        seen: another submission with these bytes, by their SHA-256.
    """

    run: RunFacts
    node: NodeFacts
    rules: StepRules
    newest_version: int
    recomputer: Recomputer
    reader: Reader
    statement: Callable[[], Statement | None]
    seen: Callable[[str], str | None]


class FileContext:
    """One file and what is known of it.

    Args:
        around: what doesn't depend on the bytes.
        view: name and announcement; rows are filled in when the file is decoded.
        data: the bytes.
        seed: 32 bytes.
        full: whether the file is checked in full.
        spot_groups: groups that costly checks look at otherwise.
    """

    def __init__(
        self,
        around: Surroundings,
        view: SubmissionView,
        data: bytes,
        *,
        seed: bytes,
        full: bool,
        spot_groups: int,
    ) -> None:
        self.view, self.full = view, full
        self._around, self._data, self._seed = around, data, seed
        self._spot_groups = spot_groups
        self._purpose = ""
        self._plan: list[PlannedGroup] | None = None
        self._computed: dict[int, Computed] = {}
        self._rescored: dict[int, Rescored] = {}
        self.submission: Submission | None = None
        self.rows: Sequence[int] = ()

    # --- facts ------------------------------------------------------------------------------------

    @property
    def run(self) -> RunFacts:
        """What the run demands."""
        return self._around.run

    @property
    def node(self) -> NodeFacts:
        """What the run knows of the node."""
        return self._around.node

    @property
    def newest_version(self) -> int:
        """The newest sealed policy version."""
        return self._around.newest_version

    @property
    def rng(self) -> SeededRng:
        """The draws of the check that is asked."""
        return _rng(self._seed, self._purpose)

    def asked(self, check: str) -> None:
        """Note which check is asked next."""
        self._purpose = f"check {check}"

    def allows(self, step: int, version: int) -> bool:
        """Whether new work for a step may come from a version."""
        return self._around.rules.allows(step, version)

    def seal(self, version: int) -> bytes:
        """The seal of a sealed version."""
        return self._around.recomputer.seal(version)

    def statement(self) -> Statement | None:
        """The signed statement beside the file."""
        return self._around.statement()

    def is_signed(self) -> bool:
        """Whether the node signed a statement about these very bytes under this very name.

        Raises:
            StoreError: it can't be read now.
        """
        try:
            said = self.statement()
        except (FormatError, IntegrityError):
            return False
        view, node = self.view, self.node.address or ""
        name = (self.run.run_id, view.step, view.node, view.n)
        return said == Statement(*name, view.sha256, view.size, node)

    def seen(self, sha256: str) -> str | None:
        """Another submission with these bytes."""
        return self._around.seen(sha256)

    # --- the file ---------------------------------------------------------------------------------

    def read(self, *, time_limit_s: float, memory_mb: int) -> None:
        """Decode the file, once.

        Raises:
            FormatError: it breaks the format or a limit, or its rows name another submission: so
                equal bytes are one submission's alone, and a copy takes nothing from its author.
        """
        if self.submission is not None:
            return
        found = self._around.reader.read(self._data, time_limit_s=time_limit_s, memory_mb=memory_mb)
        step, node, n = found.rows[0].step, found.rows[0].node, found.rows[0].submission
        if (step, node, n) != (self.view.step, self.view.node, self.view.n):
            raise FormatError(f"its rows name submission {step}-{node}-{n:05d}", fix="refuse it")
        self.submission = found
        meta = found.meta
        metadata = {
            "run_id": meta.run_id,
            "lock_digest": meta.lock_digest,
            "engine_fingerprint": meta.engine_fingerprint,
        }
        self.view = replace(self.view, rows=found.rows, metadata=metadata)
        self.rows = self._chosen()

    def decode(self) -> None:
        """Decode the file if no check has; errors as `read`."""
        self.read(time_limit_s=READ_LIMIT_S, memory_mb=READ_LIMIT_MB)

    def _chosen(self) -> list[int]:
        """All rows, or those of a few groups that nobody could guess."""
        rows = self.view.rows
        if self.full:
            return list(range(len(rows)))
        groups = list(dict.fromkeys(row.group_id for row in rows))
        rng, chosen = _rng(self._seed, "spot groups"), set()
        for _ in range(min(self._spot_groups, len(groups))):
            chosen.add(groups.pop(rng.below(len(groups))))
        return [index for index, row in enumerate(rows) if row.group_id in chosen]

    # --- recomputed -------------------------------------------------------------------------------

    def assignment(self) -> Sequence[AssignedGroup]:
        """What this node had to generate."""
        return [
            AssignedGroup(
                group_id=group.group_id,
                environment=group.environment,
                task_id=group.task_id,
                seeds=group.seeds,
                length_budget=group.length_budget,
                prompt_tokens=group.prompt_tokens,
                failure=group.failure,
                host_failed=group.host_failed,
            )
            for group in self._planned()
        ]

    def _planned(self) -> list[PlannedGroup]:
        if self._plan is None:
            self._plan = self._around.recomputer.plan(self.view, self.node.node_class)
        return self._plan

    def prefill(self, rows: Sequence[int]) -> Sequence[RowPrefill]:
        """The claimed policy's word on these rows."""
        self._compute(rows)
        return [self._computed[index].prefill for index in rows]

    def verify_proofs(
        self,
        rows: Sequence[int],
        *,
        exponent_mismatches: int,
        mantissa_mean: float,
        mantissa_median: float,
    ) -> Sequence[ProofReport]:
        """These rows' commitments against the claimed policy's hidden states."""
        self._compute(rows)
        limits = (exponent_mismatches, mantissa_mean, mantissa_median)
        found = []
        for index in rows:
            computed = self._computed[index]
            chunks = tuple(
                ProofChunk(
                    chunk.chunk,
                    chunk.exponent_mismatches,
                    chunk.mantissa_mean,
                    chunk.mantissa_median,
                    judged(chunk, *limits),
                )
                for chunk in computed.chunks
            )
            found.append(ProofReport(chunks, computed.proof_error))
        return found

    def _compute(self, rows: Sequence[int]) -> None:
        missing = [index for index in rows if index not in self._computed]
        if not missing:
            return
        wanted = [self.view.rows[index] for index in missing]
        found = self._around.recomputer.compute(self.view.policy_version, wanted)
        self._computed.update(zip(missing, found, strict=True))

    def rescore(self, rows: Sequence[int]) -> Sequence[Rescored]:
        """Scores and rewards of these rows by the run's own hosts; of whole groups."""
        missing = [index for index in rows if index not in self._rescored]
        if missing:
            plan = {group.group_id: group for group in self._planned()}
            for group_id in dict.fromkeys(self.view.rows[index].group_id for index in missing):
                members = [i for i, row in enumerate(self.view.rows) if row.group_id == group_id]
                if group_id not in plan:
                    raise FormatError(f"group {group_id} isn't one that was assigned")
                found = self._around.recomputer.rescore(
                    plan[group_id], [self.view.rows[i] for i in members], self.view.step
                )
                self._rescored.update(zip(members, found, strict=True))
        return [self._rescored[index] for index in rows]


def _rng(seed: bytes, purpose: str) -> SeededRng:
    words = hashlib.sha256(seed + purpose.encode()).digest()
    key = (int.from_bytes(words[:8], "little"), int.from_bytes(words[8:16], "little"))
    return SeededRng(key, (0, 0, 0, 0))


def uniform(seed: bytes, purpose: str) -> float:
    """One draw in [0, 1) for a purpose."""
    return _rng(seed, purpose).uniform()


def below(seed: bytes, purpose: str, n: int) -> int:
    """One draw in [0, n) for a purpose."""
    return _rng(seed, purpose).below(n)
