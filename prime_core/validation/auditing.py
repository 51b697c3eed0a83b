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
    """The config's numbers.

    Attributes:
        share: least share of files that is checked in full.
        newcomer_files: clean ones until the share begins to fall.
        spot_groups: groups of every other file that costly checks look at.
        max_rejected: rejected files of a node in one step, after which its others are refused.
    """

    share: float
    newcomer_files: int
    spot_groups: int
    max_rejected: int = 2

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
    """A node's record.

    Attributes:
        accepted, rejected: files.
        clean: accepted since the last rejection, in full files' worth of groups: many small files
            are no more work than a few whole ones.
    """

    accepted: int = 0
    rejected: int = 0
    clean: int = 0


class Records:
    """The records of all nodes, from the verdicts of the run, in whatever order they come.

    Args:
        full_groups: of a whole file; one with fewer counts for less.
    """

    def __init__(self, verdicts: Iterable[Verdict] = (), *, full_groups: int = 1) -> None:
        self._full_groups = full_groups
        self._files: dict[str, dict[tuple[int, int], float]] = {}  # worth, 0 if bad, by (step, n)
        self._refused: dict[tuple[int, str], set[int]] = {}
        self._records: dict[str, Record] = {}
        for verdict in verdicts:
            self.add(verdict)

    def of(self, node: str) -> Record:
        """The record of a node; empty for a newcomer."""
        if node not in self._records:
            worth = [each for _, each in sorted(self._files.get(node, {}).items())]
            clean = 0.0
            for each in worth:
                clean = clean + each if each else 0.0
            good = sum(each > 0 for each in worth)
            self._records[node] = Record(good, len(worth) - good, int(clean + 1e-9))
        return self._records[node]

    def refused(self, key: Key) -> int:
        """Files of the same node and step, before this one, that were rejected as bad."""
        step, node, n = key
        return sum(m < n for m in self._refused.get((step, node), ()))

    def add(self, verdict: Verdict) -> None:
        """Count a verdict; one that accuses nobody, or leaves out a group, changes no record.

        Groups are dropped where a node says that its grader failed: whoever sends nothing else
        would earn a record by no work at all. A file that the node didn't sign may be anybody's,
        and what a verdict calls blameless is nobody's doing.
        """
        good = verdict.decision == "accepted"
        if not good and verdict.severity != "drop":
            self._refused.setdefault((verdict.step, verdict.node), set()).add(verdict.n)
        caused = bool(verdict.dropped) and not verdict.blameless
        accused = verdict.severity != "drop" and not verdict.blameless
        if verdict.signed and (not caused if good else accused):
            worth = min(1.0, verdict.groups / self._full_groups) if good else 0.0
            files, place = self._files.setdefault(verdict.node, {}), (verdict.step, verdict.n)
            files[place] = min(worth, files.get(place, worth))
            self._records.pop(verdict.node, None)


class Owners:
    """Whose some bytes are: the accepted submission's, which is the one that their rows name.

    A rejected file owns nothing, so that a copy takes nothing from its author, whoever comes first.
    """

    def __init__(self) -> None:
        self._keys: dict[str, Key] = {}

    def add(self, verdict: Verdict) -> None:
        """Learn from a verdict, in whatever order they come."""
        if verdict.decision == "accepted":
            self._keys[verdict.sha256] = min(
                verdict.key, self._keys.get(verdict.sha256, verdict.key)
            )

    def other(self, sha256: str, key: Key) -> str | None:
        """Another submission that has these bytes, by its name."""
        found = self._keys.get(sha256)
        return None if found is None or found == key else f"{found[0]}-{found[1]}-{found[2]:05d}"


def audit(signer: Signer, run_id: str, key: Key, sha256: str) -> tuple[str, bytes]:
    """The validator's signature that fixes every draw about a file, and the seed that it gives."""
    signature = signer.sign(audit_message(run_id, key, sha256))
    return signature, hashlib.sha256(signature.encode()).digest()
