"""A worker that shares the honest one's code and cheats in one way: python FILE RUN_TOML NODE WAY.

It does one file at a time, as an honest one does, but asks nobody whether there is work.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from prime_core.config.load import load_run
from prime_core.rollout import worker
from prime_core.rollout.setup import Equipment
from prime_core.store.counter import StepRules, Work


class Forger(Equipment):
    """Says that everything is solved."""

    def submit(self, dispatch, rows):
        forged = [
            replace(row, score_status="scored", score=1.0, reward=row.reward + 1.0 - row.score)
            for row in rows
        ]
        return super().submit(dispatch, forged)


class Stale(Equipment):
    """Generates with version 0 whatever it claims."""

    def fetch(self, version):
        honest = super().fetch(version)
        old = self.config.run.dir / "cache" / f"{self.node}-old.safetensors"
        if not old.exists():
            shutil.copy(super().fetch(0).weights[0], old)
        return replace(honest, weights=(old,))


MOST = 3  # files of a step, so that a slow machine doesn't judge hundreds
WAYS = {"forged": Forger, "stale": Stale}


class Greedy(worker.Worker):
    """Works for the first open step, needed or not, until the run is over."""

    async def work(self):
        view, rules = self._with.view, StepRules.from_config(self._with.config)
        while True:
            view.refresh()
            if view.newest_version >= rules.steps or view.first_open >= rules.steps:
                return
            step = view.first_open
            mine = [key for key in view.submissions if key[1] == self._with.node]
            here = sum(key[0] == step for key in mine)
            waits = here >= MOST or any(key not in view.receipts for key in mine)
            version = rules.version_for(step, view.newest_version)
            if waits or version is None:
                await asyncio.sleep(0.02)
                continue
            await self._serve(Work(step, version, 1))


if __name__ == "__main__":
    config, node, way = load_run(Path(sys.argv[1])), sys.argv[2], sys.argv[3]
    worker.run(config, node, worker=Greedy, equipment=WAYS[way])
