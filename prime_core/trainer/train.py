"""The trainer process: waits for closed steps, trains them, publishes what comes out.

`prime-core trainer RUN/run.toml` calls `run`. Version 0 is sealed before anything else; killed at
any instant and started again, the trainer trains the same batches to the same bits.
"""

from __future__ import annotations

import hashlib
import logging
import os
import sys
import time
from pathlib import Path

import torch

from prime_core.api.errors import PluginError, RunError
from prime_core.api.protocols import Tracker
from prime_core.config.sections import RunConfig
from prime_core.hub import Hub, RunContext
from prime_core.signing import Signer
from prime_core.store.layout import KEYS, MODEL
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import open_store
from prime_core.store.trace import Trace
from prime_core.trainer import batch as batches
from prime_core.trainer.broadcasting import Broadcast
from prime_core.trainer.checkpoint import checkpoints, load_newest, save_checkpoint
from prime_core.trainer.fsdp import World, barrier, full_weights, open_world, shard
from prime_core.trainer.grpo import Optimization, train_rollout_step
from prime_core.trainer.guarded import GuardedAdvantage, GuardedLoss
from prime_core.trainer.measures import Measures
from prime_core.trainer.model import load_policy
from prime_core.trainer.publish import Publisher
from prime_core.trainer.weights import WeightBank

logger = logging.getLogger(__name__)


def run(config: RunConfig) -> None:
    """Train until `trainer.steps` are trained; one rank of it under torchrun.

    With `trainer.ranks` above 1 and no torchrun around it, this process becomes torchrun.

    Raises:
        PrimeError: what stops a run, with what to do.
    """
    ranks = config.trainer.ranks
    if ranks > 1 and "RANK" not in os.environ:
        _become_torchrun(ranks, config.run.dir / "run.toml")
    with open_world(config.trainer.threads) as world:
        if world.size != ranks:
            raise RunError(
                f"torchrun started {world.size} ranks, trainer.ranks is {ranks}",
                fix=f"set trainer.ranks = {world.size}, or start {ranks}",
            )
        trainer = Trainer(config, world)
        try:
            trainer.train()
        finally:
            trainer.close()


def _become_torchrun(ranks: int, run_toml: Path) -> None:
    """Replace this process; its pid stays, so that the ranks die with it."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
    role = ["-m", "prime_core", "trainer", str(run_toml), "--supervisor", str(os.getpid())]
    os.execv(sys.executable, [*launcher, "--nproc-per-node", str(ranks), *role])  # noqa: S606


def nonce_of(config: RunConfig) -> bytes | None:
    """Version 0's nonce: a function of run id and seed where every node is trusted."""
    fixed = hashlib.sha256(f"{config.run.id} {config.run.seed}".encode()).digest()
    return {"none": fixed}.get(config.run.trust)  # any other trust draws it


class Trainer:
    """One rank's state between rollout steps. Rank 0 alone publishes, logs and notifies."""

    def __init__(self, config: RunConfig, world: World) -> None:
        assert config.run.id is not None, "a prepared run has an id"
        torch.manual_seed(config.run.seed)
        self.config, self.world = config, world
        self.run_dir = config.run.dir
        self.store = open_store(config)
        self.hub = Hub.discover(config.plugins.block)
        context = RunContext.from_environment(self.run_dir)
        self.advantage = GuardedAdvantage(
            self.hub.make("advantage", config.advantage, context), self.hub, config.advantage.use
        )
        self.policy = load_policy(self.run_dir / MODEL, config.engine.temperature)
        if config.trainer.activation_checkpointing:
            self.policy.recompute_activations()
        shard(self.policy, world, getattr(torch, config.trainer.param_dtype))
        self.served_dtype = getattr(torch, config.model.dtype)
        self.bank = WeightBank(self.policy, self.served_dtype)
        self.opt = Optimization(
            torch.optim.AdamW(
                self.policy.parameters(),
                lr=config.trainer.lr,
                betas=config.trainer.betas,
                eps=config.trainer.eps,
                weight_decay=config.trainer.weight_decay,
                fused=True,
            ),
            GuardedLoss(self.hub.make("loss", config.loss, context), self.hub, config.loss.use),
            config.trainer,
            config.loss,
        )
        self.publisher = Publisher(
            self.store,
            self.run_dir,
            config.run.id,
            Signer.load(self.run_dir / KEYS / "trainer.key"),
            nonce_of(config),
            config.shardcast.shard_bytes if config.shardcast.mode == "tree" else None,
        )
        process = "trainer" if world.leads else f"trainer-rank-{world.rank}"
        self.trace = Trace(self.run_dir, process)
        self.broadcast = Broadcast(self.publisher, self.trace, self._drop_weights)
        self.metrics = MetricsLog(self.run_dir, process)
        self.trackers: list[tuple[str, Tracker]] = []
        if world.leads:
            self.hub.start_observers(config)
            self.trackers = [
                (choice.use, self.hub.make("tracker", choice, context))
                for choice in config.trackers
            ]
        self.tracker_failures = 0
        self.parameters = sum(parameter.numel() for parameter in self.policy.parameters())

    def train(self) -> None:
        """Resume from the newest checkpoint, seal its version, then train step after step."""
        start = load_newest(self.run_dir, self.policy, self.opt, self.world)
        if self.world.leads:
            self.publisher.finish_started()
        barrier(self.world)
        self._publish(start)
        logger.info("the trainer starts at step %d of %d", start, self.config.trainer.steps)
        since = time.monotonic()
        for step in range(start, self.config.trainer.steps):
            metrics = self._train_step(step)
            now = time.monotonic()
            metrics["time/step_s"] = now - since
            metrics["time/busy_s"] = now - since - metrics["time/idle_s"]
            since = now
            self._tell(step, metrics)
            done = step + 1
            if (
                done % self.config.trainer.checkpoint_every == 0
                or done == self.config.trainer.steps
            ):
                with self.trace.span("checkpoint", step=step):
                    keep = self.config.trainer.keep_checkpoints
                    save_checkpoint(self.run_dir, done, self.policy, self.opt, self.world, keep)
        self.broadcast.finish()

    def _train_step(self, step: int) -> dict[str, float]:
        """Wait for step `step`'s batch, train it, publish version `step` + 1."""
        started = time.monotonic()
        with self.trace.span("wait", step=step):
            closed = batches.wait_closed(
                self.store,
                step,
                self.config.trainer.groups_per_step,
                lambda reason: self.metrics.log(step, waiting_for=reason),
                sleep=self._sleep,
            )
        idle = time.monotonic() - started
        groups = batches.load_groups(self.store, closed, self.config, self.advantage)
        self._hold_versions(step, {one.version for group in groups for one in group.rollouts})
        self.opt.measures = Measures()
        train_rollout_step(
            self.policy,
            [group.rollouts for group in groups],
            step,
            self.bank,
            self.opt,
            self.world,
            self.trace,
        )
        published = time.monotonic()
        with self.trace.span("snapshot", step=step, version=step + 1):
            same = self._publish(step + 1)
        publish_s = time.monotonic() - published
        measured = self.opt.measures.result(self.world)
        return {
            **batches.describe(groups, step),
            **measured,
            "version": float(step + 1),
            "optimizer/steps": float(self.opt.steps_done),
            # 6 N per token for forward and backward, 2 N for forward alone (Kaplan et al. 2020,
            # section 2.1); attention's own share, small at these lengths, is left out
            "flops/train": 6.0 * self.parameters * measured["tokens/packed"],
            "flops/logprobs": 2.0 * self.parameters * measured["tokens/forward"],
            "time/publish_s": publish_s,
            "publish/differs": float(not same),
            "time/idle_s": idle,
        }

    def _publish(self, version: int) -> bool:
        """Gather, round to the served dtype, hand over; keep the version for mismatch passes.

        Returns False where these aren't the bits that were sealed under the version before.
        """
        weights = full_weights(self.policy, self.world, self.served_dtype)
        self.bank.remember(version)  # before the thread starts, which would compete with it
        return self.broadcast.start(version, weights) if self.world.leads else True

    def _drop_weights(self, version: int) -> None:
        resumes_at = (checkpoints(self.run_dir) or [0])[-1]
        needed_from = max(0, resumes_at - self.config.async_.max_lag)
        self.publisher.drop_weights(version, self.config.store.keep_policies, needed_from)

    def _sleep(self, seconds: float) -> None:
        self.broadcast.check()
        time.sleep(seconds)

    def _hold_versions(self, step: int, in_batch: set[int]) -> None:
        """Have the batch's versions in the bank, and none that no later step may need."""
        wanted = {*in_batch, *range(max(0, step - self.config.async_.max_lag), step + 1)}
        if self.config.loss.kl_coef > 0:
            wanted.add(0)
        self.bank.keep_only(wanted)
        for version in sorted((in_batch | (wanted & {0})) - set(self.bank.versions)):
            with self.publisher.fetched(version) as files:
                self.bank.load(version, files)

    def _tell(self, step: int, metrics: dict[str, float]) -> None:
        """Metrics to the log, the trackers and the observers."""
        if not self.world.leads:
            return
        self.metrics.log(step, **metrics)
        logger.info(
            "step %d: reward %.4f, loss %.3g, mismatch %.2g nats, %.2f s busy, %.2f s idle",
            step,
            metrics.get("reward/mean", 0.0),
            metrics["loss/mean"],
            metrics["mismatch/kl"],
            metrics["time/busy_s"],
            metrics["time/idle_s"],
        )
        for name, tracker in self.trackers:
            try:
                with self.hub.at_work("tracker", name):
                    tracker.log(step, metrics)
            except PluginError:
                self.tracker_failures += 1
                logger.exception("a tracker failed (%d so far); it goes on", self.tracker_failures)
        if failures := self.hub.step_finished(step, metrics):
            self.metrics.log(step, **{"trainer/observer_failures": failures})

    def close(self) -> None:
        """Flush trackers and files."""
        self.broadcast.settle()
        for name, tracker in self.trackers:
            try:
                with self.hub.at_work("tracker", name):
                    tracker.close()
            except PluginError:
                logger.exception("a tracker failed to close")
        self.metrics.close()
        self.trace.close()
