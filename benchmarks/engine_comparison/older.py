"""Policies that are some optimizer steps further than a model, as a run's trainer would have them.

Whoever generates with the model while such a policy is asked for holds an older one. Which way
training goes hardly matters: AdamW moves every weight by about the learning rate a step, so the
advantages are arbitrary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from prime_core.api import GenerationRequest, PolicyFiles
from prime_core.engines.model_files import build_model
from prime_core.engines.strict_load import load_weights

MAX_NORM = 0.1  # as in the INTELLECT-2 run
BATCH = 4


def trained(
    policy: PolicyFiles,
    requests: Sequence[GenerationRequest],
    found: Mapping[str, Any],
    folder: Path,
    *,
    lr: float,
    marks: Sequence[int],
) -> dict[int, PolicyFiles]:
    """The policies after so many optimizer steps on these completions, by number of steps.

    Args:
        found: the completions, by request.
        marks: at which steps a policy is kept.
    """
    model = build_model(policy.model_dir, dtype="float32")
    load_weights(model, policy.weights)
    model.requires_grad_(True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=lr, betas=(0.9, 0.95), weight_decay=0.0)
    kept: dict[int, PolicyFiles] = {}
    for step in range(1, max(marks) + 1):
        optimizer.zero_grad()
        for index in range(BATCH):
            request = requests[(BATCH * step + index) % len(requests)]
            sign = -1.0 if index % 2 else 1.0
            loss = sign * _loss(model, request, found[request.id]) / BATCH
            loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        if step in marks:
            kept[step] = _save(model, policy, folder / str(step))
    return kept


def _loss(model: Any, request: GenerationRequest, generation: Any) -> torch.Tensor:
    tokens = torch.tensor([[*request.token_ids, *generation.token_ids]])
    logits = model(tokens, use_cache=False).logits[0, len(request.token_ids) - 1 : -1]
    chosen = torch.tensor(generation.token_ids)
    return torch.nn.functional.cross_entropy(logits, chosen)


def _save(model: Any, policy: PolicyFiles, folder: Path) -> PolicyFiles:
    """The tensors that the policy's own files hold, under the same names."""
    folder.mkdir(parents=True)
    values, files = model.state_dict(), []
    for file in policy.weights:
        tensors = {name: values[name].contiguous() for name in load_file(file)}
        save_file(tensors, folder / file.name, metadata={"format": "pt"})
        files.append(folder / file.name)
    return replace(policy, weights=tuple(files))
