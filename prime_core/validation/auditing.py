"""How much of a node's work is checked in full: everybody's at first, less as the record grows.

The draw is seeded by the validator's signature over the file's hash, which nobody can know before
the file exists, and which anybody can verify afterwards. The record is the verdicts themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from prime_core.signing import Signer
from prime_core.store.records import Key
from prime_core.store.verdicts import Verdict, audit_message


@dataclass(frozen=True, slots=True)
class Policy:
    """The config's numbers: least share, files of a newcomer, groups looked at otherwise."""

    share: float
    newcomer_files: int
    spot_groups: int

    def share_for(self, clean: int) -> float:
        """Share of a node's files that is checked in full after so many clean ones in a row.

        1 up to `newcomer_files`, then falling as newcomer_files / clean, never below `share`: a
        node that turns dishonest late still meets about as many full checks per doubling of its
        record as a newcomer does.
        """
        if clean <= self.newcomer_files or self.share >= 1.0:
            return 1.0
        return max(self.share, self.newcomer_files / clean)


@dataclass(frozen=True, slots=True)
class Record:
    """A node's record: files judged, and accepted in a row since the last rejection."""

    accepted: int = 0
    rejected: int = 0
    clean: int = 0


class Records:
    """The records of all nodes, from the verdicts of the run, in whatever order they come."""

    def __init__(self, verdicts: Iterable[Verdict] = ()) -> None:
        self._files: dict[str, dict[tuple[int, int], bool]] = {}  # accepted by (step, n)
        self._records: dict[str, Record] = {}
        for verdict in verdicts:
            self.add(verdict)

    def of(self, node: str) -> Record:
        """The record of a node; empty for a newcomer."""
        if node not in self._records:
            accepted = [good for _, good in sorted(self._files.get(node, {}).items())]
            clean = next((i for i, good in enumerate(reversed(accepted)) if not good), None)
            self._records[node] = Record(
                accepted=sum(accepted),
                rejected=len(accepted) - sum(accepted),
                clean=len(accepted) if clean is None else clean,
            )
        return self._records[node]

    def add(self, verdict: Verdict) -> None:
        """Count a verdict; one that accuses nobody, or leaves out a group, changes nothing.

        Groups are dropped where a node says that its grader failed: whoever sends nothing else
        would earn a record by no work at all.
        """
        good = verdict.decision == "accepted"
        if (good and not verdict.dropped) or (not good and verdict.severity != "drop"):
            self._files.setdefault(verdict.node, {})[verdict.step, verdict.n] = good
            self._records.pop(verdict.node, None)


def audit(signer: Signer, run_id: str, key: Key, sha256: str) -> tuple[str, bytes]:
    """The validator's signature that fixes every draw about a file, and the seed that it gives."""
    signature = signer.sign(audit_message(run_id, key, sha256))
    return signature, hashlib.sha256(signature.encode()).digest()
