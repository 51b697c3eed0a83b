"""One engine generates, the other recomputes and judges: the right weights first, then others.

Others are int8 weights, weights off by 1 %, and policies some optimizer steps further: under them,
what was generated is an older policy's.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from engine_comparison.material import (
    Rows,
    arbitrary_prompts,
    collect,
    make_requests,
    opened,
    prompts,
    smollm2,
    table,
    tiny_qwen2,
)
from engine_comparison.older import trained
from prime_core.api import GenerationRequest, PolicyFiles, PrefillRequest
from prime_core.engines.model_files import local_policy
from prime_core.toploc import ProofBuilder, Thresholds, verify_proofs
from prime_core.toploc.noise import accepts, fit_thresholds
from prime_core.validation.false_models import changed_policy, int8, off_by

DIRECTIONS = (("vllm", "transformers"), ("transformers", "vllm"))
BATCH = {"vllm": 32, "transformers": 16}
# Optimizer steps; two are one step of a run.
TINY_MARKS, SMALL_MARKS = (2, 8, 32), (2, 16)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model and what it is asked; `lr` is that of the runs it is trained in here."""

    name: str
    model: Path
    tokens: Sequence[tuple[int, ...]]
    lr: float
    marks: Sequence[int]


def equality(home: Path, *, quick: bool, completions: int, models: Sequence[str]) -> Rows:
    """Both models, both dtypes, both directions."""
    length = 12 if quick else 32
    subjects: list[Subject] = []
    if "tiny" in models:
        asked = arbitrary_prompts(24 if quick else 500)
        subjects.append(
            Subject("tiny Qwen2", tiny_qwen2(home), asked, 1e-4, TINY_MARKS[: 1 if quick else None])
        )
    if "smollm2" in models:
        small = smollm2(home, "float32")
        asked = prompts(small, 4 if quick else completions)
        subjects.append(
            Subject("SmolLM2-135M", small, asked, 1e-6, SMALL_MARKS[: 1 if quick else None])
        )
    rows: Rows = []
    for subject in subjects:
        folder = home / f"{subject.model.name}-others"
        others = false_policies(subject, folder, length)
        for dtype in ("float32", "bfloat16"):
            for generates, judges in DIRECTIONS:
                made = compare(subject, dtype, generates, judges, others, length)
                print(table(made), file=sys.stderr, flush=True)
                rows += made
    return rows


def false_policies(subject: Subject, folder: Path, length: int) -> dict[str, PolicyFiles]:
    """Policies that the completions aren't of, by what they are."""
    policy = local_policy(subject.model)
    requests = make_requests(subject.tokens[:32], length, 0.7)
    with opened("transformers", subject.model, "float32", BATCH["transformers"]) as engine:
        found = collect(engine, requests)
    further = trained(policy, requests, found, folder, lr=subject.lr, marks=subject.marks)
    return {
        "int8": changed_policy(policy, int8, folder / "int8"),
        "off by 1 %": changed_policy(policy, off_by(0.01), folder / "off"),
        **{f"{steps} steps of {subject.lr:g} on": each for steps, each in further.items()},
    }


def compare(
    subject: Subject,
    dtype: str,
    generates: str,
    judges: str,
    others: dict[str, PolicyFiles],
    length: int,
) -> Rows:
    """One model in one dtype and direction: its own weights, then others."""
    requests = [
        replace(each, commitment=ProofBuilder())
        for each in make_requests(subject.tokens, length, 0.7)
    ]
    with opened(generates, subject.model, dtype, BATCH[generates]) as engine:
        found = collect(engine, requests)
    with opened(judges, subject.model, dtype, BATCH[judges]) as engine:
        figures, honest = judged(engine, requests, found)
        thresholds = fit_thresholds(honest[::2])
        kinds = {"its own": (figures, honest[1::2])}
        for version, (what, policy) in enumerate(others.items(), start=1):
            digest = version.to_bytes(32)
            engine.load(replace(policy, version=version, digest=digest))
            kinds[what] = judged(engine, requests, found)
    rows: Rows = []
    for what, (figures, verdicts) in kinds.items():
        rows.append(
            {
                "model": subject.name,
                "dtype": dtype,
                "generates": generates,
                "judges": judges,
                "with weights": what,
                **figures,
                "paper's thresholds": accepted(verdicts, Thresholds()),
                "fitted": accepted(verdicts, thresholds),
            }
        )
    return rows


def accepted(verdicts: Sequence[Any], thresholds: Thresholds) -> str:
    """Completions whose commitments all pass, under these thresholds."""
    passed = sum(all(accepts(each, thresholds) for each in chunks) for chunks in verdicts)
    return f"{passed}/{len(verdicts)}"


def judged(
    engine: Any, requests: Sequence[GenerationRequest], found: dict[str, Any]
) -> tuple[dict[str, Any], list[Any]]:
    """Log-probabilities and races of completions, recomputed; and their commitments' verdicts."""
    errors, equal, verdicts = [], [], []
    for start in range(0, len(requests), 16):
        part = requests[start : start + 16]
        asked = [
            PrefillRequest(
                (*each.token_ids, *found[each.id].token_ids),
                len(each.token_ids),
                each.temperature,
                seed=each.seed,
                positions=tuple(range(len(found[each.id].token_ids))),
            )
            for each in part
        ]
        for each, prefill in zip(part, engine.prefill(asked), strict=True):
            assert isinstance(each.commitment, ProofBuilder)
            errors.append(np.abs(prefill.logprobs - np.array(found[each.id].logprobs)))
            equal.append(prefill.draws.race_gaps == 0)
            rows = torch.from_numpy(prefill.hidden_states.copy()).bfloat16()
            verdicts.append(verify_proofs(rows, each.commitment.finish(), Thresholds()))
    differences, won = np.concatenate(errors), np.concatenate(equal)
    figures = {
        "tokens": won.size,
        "logprob_max": float(f"{differences.max():.2g}"),
        "logprob_mean": float(f"{differences.mean():.2g}"),
        "equal_tokens": float(f"{won.mean():.5f}"),
    }
    return figures, verdicts
