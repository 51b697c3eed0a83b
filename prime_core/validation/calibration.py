"""Measures what commitments of honest nodes look like, and of others, and sets thresholds between.

Called by `prime-core toploc calibrate`. Everything is measured with the run's own model, prompts,
sampling and engine: what is honest noise for one model and dtype is an attack on another.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prime_core.api import EngineError, GenerationRequest, PolicyFiles, PrefillRequest
from prime_core.toploc import ProofBuilder, build_proofs, verify_batch
from prime_core.toploc.noise import Sequences, fit_thresholds, passing
from prime_core.validation.calibrated import (
    PAPER,
    Calibration,
    measure_false,
    measure_honest,
    measure_races,
)
from prime_core.validation.false_models import changed_policy, int8, off_by
from prime_core.validation.null_proofs import forged, replayed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from prime_core.api import Context, InferenceEngine
    from prime_core.config.sections import EngineSection, RunConfig
    from prime_core.hub import Hub


@dataclass(frozen=True, slots=True)
class Answers:
    """Completions of one honest setting, with the proofs that it built."""

    tokens: list[tuple[int, ...]]
    proofs: list[bytes]


@dataclass(frozen=True, slots=True)
class Calibrator:
    """A model, its engine, and the prompts to measure with.

    Attributes:
        policy: the model's files.
        prompts: prompt tokens; one completion is generated of each, in every honest setting.
        tokens: at most so many a completion.
        progress: told what is being measured.
        engines: other inference engines that honest nodes may use, with their default parameters.
    """

    config: RunConfig
    hub: Hub
    context: Context
    policy: PolicyFiles
    prompts: Sequence[tuple[int, ...]]
    tokens: int
    progress: Callable[[str], None]
    engines: tuple[str, ...] = ()

    def calibrate(self) -> Calibration:
        """Measure honest settings, false models and forgeries; fit thresholds.

        Raises:
            EngineError: the engine can't commit, or too few tokens were generated to measure by.
        """
        answers = {name: self._generate(name, section) for name, section in self._honest().items()}
        with self._engine(self.config.recomputing_engine) as validator:
            fingerprint = validator.capabilities.fingerprint
            honest, races, states = {}, {}, {}
            for name, each in answers.items():
                self.progress(f"judging: {name}")
                states[name], gaps = self._recompute(validator, each)
                honest[name] = verify_batch(states[name], each.proofs, PAPER)
                races[name] = measure_races(gaps)
        from prime_core.engines.model_files import model_digest

        own, text = states["as configured"], answers["as configured"]
        false: dict[str, Sequences] = {"another sequence": replayed(own)}
        for name, rows in self._false_states(text):
            proofs = [build_proofs(each) for each in rows]
            false[name] = verify_batch(own, proofs, PAPER)
        forgeries = forged(own)
        fitted = fit_thresholds([chunks for each in honest.values() for chunks in each])
        return Calibration(
            thresholds=fitted,
            honest={name: measure_honest(each, fitted) for name, each in honest.items()},
            false={name: measure_false(each, fitted) for name, each in false.items()},
            forgeries={name: measure_false(each, fitted) for name, each in forgeries.items()},
            races=races,
            forged=tuple(passing(forgeries, fitted)),
            model=model_digest(self.policy.model_dir),
            fingerprint=fingerprint,
            chunks=sum(len(chunks) for each in honest.values() for chunks in each),
        )

    def _honest(self) -> dict[str, EngineSection]:
        """Settings that honest nodes differ in."""
        fields = self._fields(self.config.engine)
        size = int(fields.get("batch_size", 1))
        other = {"sdpa": "eager", "eager": "sdpa"}.get(str(fields.get("attention")))
        wanted: dict[str, dict[str, Any]] = {
            "as configured": {},
            "one at a time": {"batch_size": 1},
            "other batches": {"batch_size": max(2, size // 2 + 1)},
            f"attention {other}": {"attention": other},
            "other thread count": {"threads": 1 + int(fields.get("threads", 1))},
        }
        settings = {
            name: _with(self.config.engine, change)
            for name, change in wanted.items()
            if set(change) <= set(fields) and None not in change.values()
        }
        for name in self.engines:
            update: dict[str, Any] = {"use": name, "version": "", "params": {}}
            settings[f"engine {name}"] = self.config.engine.model_copy(update=update)
        return settings

    def _fields(self, choice: EngineSection) -> dict[str, Any]:
        """An engine's parameters, as they will be."""
        spec = self.hub.spec("inference_engine", choice.use, choice.version)
        defaults = {name: field.default for name, field in spec.params.model_fields.items()}
        given = {"dtype": self.config.model.dtype, "threads": choice.threads, **choice.params}
        return {**defaults, **{name: given[name] for name in given if name in defaults}}

    @contextmanager
    def _engine(
        self, section: EngineSection, policy: PolicyFiles | None = None
    ) -> Iterator[InferenceEngine]:
        from prime_core.engines import open_engine

        config = self.config.model_copy(update={"engine": section})
        engine = open_engine(config, self.hub, self.context)
        try:
            if not engine.capabilities.commitments:
                raise EngineError(
                    "it builds no commitments, so there is nothing to calibrate",
                    where=f"engine {engine.capabilities.name}",
                    fix="set [engine] use to one that does, e.g. transformers",
                )
            engine.load(policy or self.policy)
            yield engine
        finally:
            engine.close()

    def _generate(self, name: str, section: EngineSection) -> Answers:
        import asyncio

        self.progress(f"generating: {name}")
        builders = [ProofBuilder() for _ in self.prompts]
        requests = [
            GenerationRequest(
                id=str(index),
                group_id="calibration",
                token_ids=prompt,
                seed=index,
                position=0,
                max_tokens=self.tokens,
                temperature=self.config.engine.temperature,
                commitment=builders[index],
            )
            for index, prompt in enumerate(self.prompts)
        ]
        found: dict[str, tuple[int, ...]] = {}

        async def run(engine: InferenceEngine) -> None:
            async def stream() -> Any:
                for request in requests:
                    yield request

            async for generation in engine.generate(stream()):
                found[generation.id] = generation.token_ids

        with self._engine(section) as engine:
            asyncio.run(run(engine))
        return Answers(
            tokens=[found[str(index)] for index in range(len(requests))],
            proofs=[builder.finish() for builder in builders],
        )

    def _recompute(
        self, engine: InferenceEngine, answers: Answers
    ) -> tuple[list[NDArray[np.float32]], NDArray[np.float64]]:
        """The engine's own states of these completions, and the gaps of all their races."""
        prefills = engine.prefill(
            [
                PrefillRequest(
                    token_ids=prompt + tokens,
                    start=len(prompt),
                    temperature=self.config.engine.temperature,
                    seed=index,
                    positions=tuple(range(len(tokens))),
                )
                for index, (prompt, tokens) in enumerate(
                    zip(self.prompts, answers.tokens, strict=True)
                )
            ]
        )
        gaps = [each.draws.race_gaps for each in prefills if each.draws is not None]
        return [each.hidden_states for each in prefills], np.concatenate(gaps)

    def _false_states(self, text: Answers) -> Iterator[tuple[str, list[NDArray[np.float32]]]]:
        """What other models make of the same text; a proof made of that is false."""
        judging = self.config.recomputing_engine
        dtype = self._fields(judging).get("dtype")
        other = {"float32": "bfloat16", "bfloat16": "float32"}.get(str(dtype))
        if other is not None:
            self.progress(f"dtype {other}")
            with self._engine(_with(judging, {"dtype": other})) as engine:
                yield f"dtype {other}", self._recompute(engine, text)[0]
        for name, change in {
            "int8 weights": int8,
            "weights off by 1 %": off_by(1e-2),
            "weights off by 0.1 %": off_by(1e-3),
            "weights off by 0.01 %": off_by(1e-4),
        }.items():
            self.progress(name)
            with tempfile.TemporaryDirectory() as folder:
                policy = changed_policy(self.policy, change, Path(folder) / "weights")
                with self._engine(self.config.recomputing_engine, policy) as engine:
                    yield name, self._recompute(engine, text)[0]


def _with(section: EngineSection, change: Mapping[str, Any]) -> EngineSection:
    return section.model_copy(update={"params": {**section.params, **change}})
