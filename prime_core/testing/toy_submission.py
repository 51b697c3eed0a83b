"""A small honest submission and the context that a check judges it in; no model, no store.

Authors of sanity checks make one with `toy_submission()`, change rows with `with_row`, and see
what their check says. The policy is a table of logits, sampled by the real seeded race.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prime_core.api import (
    AssignedGroup,
    FormatError,
    NodeFacts,
    ProofChunk,
    ProofReport,
    Rescored,
    RolloutView,
    RowPrefill,
    RunFacts,
    Score,
    Statement,
    SubmissionView,
)
from prime_core.assignment import SeededRng
from prime_core.store.schema import RolloutRow
from prime_core.testing.toy_policy import EOS, VOCABULARY, ToyPolicy

MAX_TOKENS = 48
PROOF_BYTES = 258
INTERVAL = 32
ADDRESS = "0x" + "ab" * 20
SEAL = bytes(range(32))


def toy_score(row: RolloutView) -> float:
    """What the toy verifier says: 1 for an even sum of tokens."""
    return float(sum(row.completion_tokens) % 2 == 0)


def toy_proofs(row: RolloutView) -> bytes:
    """Stand-ins for commitments: right in length and number, and of the tokens alone."""
    digest = hashlib.sha256(repr(list(row.completion_tokens)).encode()).digest()
    return (digest * 9)[:PROOF_BYTES] * -(-row.length // INTERVAL)


@dataclass
class ToyContext:
    """A `CheckContext` over the toy policy; authors change its attributes."""

    submission: SubmissionView
    run: RunFacts
    node: NodeFacts
    assigned: tuple[AssignedGroup, ...]
    policy: ToyPolicy = field(default_factory=ToyPolicy)
    full: bool = True
    rows: Sequence[int] = ()
    newest_version: int = 3
    oldest_version: int = 1
    signed: Statement | None = None
    earlier: dict[str, str] = field(default_factory=dict)
    unreadable: str = ""
    scores: dict[int, Rescored] = field(default_factory=dict)
    proof_errors: dict[int, str] = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)

    @property
    def rng(self) -> SeededRng:
        """Fixed draws."""
        return SeededRng((1, 2), (0, 0, 0, 0))

    def allows(self, step: int, version: int) -> bool:
        """Versions 1 and newer, up to the step."""
        return self.oldest_version <= version <= step

    def seal(self, version: int) -> bytes:
        """One seal for every version."""
        return SEAL

    def read(self, *, time_limit_s: float, memory_mb: int) -> None:
        """Raises what `unreadable` says."""
        if self.unreadable:
            raise FormatError(self.unreadable)

    def statement(self) -> Statement | None:
        """The attribute `signed`."""
        return self.signed

    def seen(self, sha256: str) -> str | None:
        """From `earlier`."""
        return self.earlier.get(sha256)

    def assignment(self) -> Sequence[AssignedGroup]:
        """The attribute `assigned`."""
        return self.assigned

    def prefill(self, rows: Sequence[int]) -> Sequence[RowPrefill]:
        """By the toy policy."""
        self.calls.append("prefill")
        return [self.policy.prefill(self.submission.rows[index]) for index in rows]

    def verify_proofs(
        self,
        rows: Sequence[int],
        *,
        exponent_mismatches: int,
        mantissa_mean: float,
        mantissa_median: float,
    ) -> Sequence[ProofReport]:
        """Accepts what `toy_proofs` makes."""
        self.calls.append("verify_proofs")
        return [self._proof(index) for index in rows]

    def _proof(self, index: int) -> ProofReport:
        row = self.submission.rows[index]
        wanted = toy_proofs(row)
        if index in self.proof_errors or len(row.proofs) != len(wanted):
            return ProofReport(error=self.proof_errors.get(index, "wrong number of bytes"))
        chunks = []
        for chunk in range(len(wanted) // PROOF_BYTES):
            here = slice(chunk * PROOF_BYTES, (chunk + 1) * PROOF_BYTES)
            good = row.proofs[here] == wanted[here]
            chunks.append(ProofChunk(chunk, 0 if good else 120, 0.0, 0.0, good))
        return ProofReport(tuple(chunks))

    def rescore(self, rows: Sequence[int]) -> Sequence[Rescored]:
        """The toy verifier's word; `scores` replaces it for single rows."""
        self.calls.append("rescore")
        found = []
        for index in rows:
            value = toy_score(self.submission.rows[index])
            found.append(self.scores.get(index, Rescored(Score(value), value, {"task": value})))
        return found


def toy_submission(
    *, groups: int = 2, group_size: int = 4, seed: int = 0, policy: ToyPolicy | None = None
) -> tuple[SubmissionView, ToyContext]:
    """An honest submission, and the context to judge it in."""
    policy = policy or ToyPolicy()
    assigned = tuple(
        AssignedGroup(
            group_id=f"3-node-0-{k}",
            environment="toy",
            task_id=f"t{k}",
            seeds=tuple(1000 * (seed + 1) + 100 * k + sample for sample in range(group_size)),
            length_budget=None,
            prompt_tokens=(5, 6, 7 + k % 4),
        )
        for k in range(groups)
    )
    rows = [
        _row(policy, group, sample, sampling_seed)
        for group in assigned
        for sample, sampling_seed in enumerate(group.seeds)
    ]
    sha256 = hashlib.sha256(repr(rows).encode()).hexdigest()
    view = SubmissionView(
        run_id="toy-run",
        step=3,
        node="node",
        n=0,
        policy_version=3,
        policy_digest=SEAL.hex(),
        groups=groups,
        group_size=group_size,
        node_class="default",
        sha256=sha256,
        size=4096,
        rows=tuple(rows),
        metadata={"run_id": "toy-run", "lock_digest": "l" * 64, "engine_fingerprint": "toy"},
    )
    facts = RunFacts(
        run_id="toy-run",
        lock_digest="l" * 64,
        engine_fingerprint="toy",
        temperature=1.0,
        max_tokens=MAX_TOKENS,
        max_prompt_tokens=16,
        max_total_tokens=16 + MAX_TOKENS,
        max_turns=4,
        vocabulary=VOCABULARY,
        stop_ids=frozenset({EOS}),
        score_ranges={"toy": (0.0, 1.0)},
        deterministic=frozenset({"toy"}),
        max_groups=groups,
        group_size=group_size,
    )
    node = NodeFacts("node", ADDRESS, "home", "default", stake=100)
    signed = Statement("toy-run", 3, "node", 0, sha256, 4096, ADDRESS)
    context = ToyContext(
        view, facts, node, assigned, policy=policy, rows=range(len(rows)), signed=signed
    )
    return view, context


def with_row(
    given: tuple[SubmissionView, ToyContext], index: int, **changes: Any
) -> tuple[SubmissionView, ToyContext]:
    """A copy in which one row has other values; the context belongs to the copy."""
    view, context = given
    rows = list(view.rows)
    rows[index] = replace(rows[index], **changes)  # type: ignore[type-var]  # they're RolloutRows
    return with_submission(context, replace(view, rows=tuple(rows)))


def with_submission(context: ToyContext, view: SubmissionView) -> tuple[SubmissionView, ToyContext]:
    """The view with a copy of the context that belongs to it."""
    return view, replace(context, submission=view, calls=[])


def _row(policy: ToyPolicy, group: AssignedGroup, sample: int, seed: int) -> RolloutRow:
    tokens, logprobs, finish = policy.sample(group.prompt_tokens, seed, MAX_TOKENS)
    row = RolloutRow(
        environment=group.environment,
        task_id=group.task_id,
        group_id=group.group_id,
        sample=sample,
        step=3,
        policy_version=3,
        node="node",
        submission=0,
        max_tokens=MAX_TOKENS,
        prompt_tokens=list(group.prompt_tokens),
        completion_tokens=tokens,
        completion_mask=[True] * len(tokens),
        completion_logprobs=[min(0.0, value) for value in logprobs],
        finish_reason=finish,
        length_budget=group.length_budget,
        sampling_seed=seed,
        temperature=1.0,
        score=0.0,
        score_status="scored",
        reward=0.0,
        reward_parts={},
        proofs=b"",
        policy_digest=SEAL,
        turn_ends=[len(tokens)],
    )
    value = toy_score(row)
    scored = replace(row, score=value, reward=value, reward_parts={"task": value})
    return replace(scored, proofs=toy_proofs(scored))
