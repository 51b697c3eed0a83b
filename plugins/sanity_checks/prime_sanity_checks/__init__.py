"""Sanity checks of submitted rollouts, cheapest first: eleven plugins of kind `sanity_check`.

Found through the entry points `sanity_check.<name>`; run in the validator's process. Nothing heavy
is imported before a check is asked.
"""

from prime_core.api import NoParams, SanityCheckSpec, hookimpl
from prime_sanity_checks.assignment import make_assignment
from prime_sanity_checks.bounds import BoundsParams, make_bounds
from prime_sanity_checks.identity import make_identity
from prime_sanity_checks.logprobs import LogprobsParams, make_logprobs
from prime_sanity_checks.policy_digest import make_policy_digest
from prime_sanity_checks.replay import ReplayParams, make_replay
from prime_sanity_checks.rewards import RewardsParams, make_rewards
from prime_sanity_checks.sampling import SamplingParams, make_sampling
from prime_sanity_checks.schema import SchemaParams, make_schema
from prime_sanity_checks.termination import TerminationParams, make_termination
from prime_sanity_checks.toploc import ToplocParams, make_toploc

__all__ = ["prime_sanity_checks"]


@hookimpl
def prime_sanity_checks() -> list[SanityCheckSpec]:
    """Register all of them."""
    return [
        SanityCheckSpec(
            name="schema",
            params=SchemaParams,
            factory=make_schema,
            summary="Decodes the file by the trainer's reader in a process with limits",
            cost="one decoding of the file",
            catches="malformed and oversized files, bombs, NaN, wrong types, broken groups",
        ),
        SanityCheckSpec(
            name="identity",
            params=NoParams,
            factory=make_identity,
            summary="Signed statement, known node, allowed version, bytes not seen before",
            cost="one signature",
            catches="files in another's name, stale versions, copied and resubmitted files",
        ),
        SanityCheckSpec(
            name="policy_digest",
            params=NoParams,
            factory=make_policy_digest,
            summary="Seal of the claimed version, run, lock and engine",
            cost="nothing",
            catches="mistakes: another run's or version's rollouts",
        ),
        SanityCheckSpec(
            name="assignment",
            params=NoParams,
            factory=make_assignment,
            summary="Tasks, seeds, length targets, prompts and sampling as assigned",
            cost="one rendering of the prompts",
            catches="cherry-picked tasks, seeds, targets; edited prompts; incomplete groups",
        ),
        SanityCheckSpec(
            name="bounds",
            params=BoundsParams,
            factory=make_bounds,
            summary="Scores, rewards, lengths, ids and log-probabilities within bounds",
            cost="nothing",
            catches="values that can't be",
        ),
        SanityCheckSpec(
            name="termination",
            params=TerminationParams,
            factory=make_termination,
            summary="End tokens that the policy would draw, or a limit; nothing after",
            cost="shares one forward pass",
            catches="truncated rollouts, text after the end",
        ),
        SanityCheckSpec(
            name="rewards",
            params=RewardsParams,
            factory=make_rewards,
            summary="Scores and rewards recomputed by the run's own hosts",
            cost="one scoring of the rows",
            catches="forged scores and rewards, edited conversations",
        ),
        SanityCheckSpec(
            name="logprobs",
            params=LogprobsParams,
            factory=make_logprobs,
            summary="Log-probabilities against one forward pass",
            cost="shares one forward pass",
            catches="forged log-probabilities, other weights",
        ),
        SanityCheckSpec(
            name="sampling",
            params=SamplingParams,
            factory=make_sampling,
            summary="Chosen-token probabilities against what the temperature predicts",
            cost="shares one forward pass",
            catches="greedy or other text, appended and edited passages",
        ),
        SanityCheckSpec(
            name="replay",
            params=ReplayParams,
            factory=make_replay,
            summary="Every token won its seeded race",
            cost="shares one forward pass",
            catches="any text that the seed doesn't draw: best-of-n, teacher forcing, edits",
        ),
        SanityCheckSpec(
            name="toploc",
            params=ToplocParams,
            factory=make_toploc,
            summary="Commitments against the claimed policy's hidden states",
            cost="shares one forward pass",
            catches="smaller, quantised or stale models; forged proofs",
        ),
    ]
