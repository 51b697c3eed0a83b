"""What `prime-core fetch` does: one version with its progress, or all that a run's worker needs.

`prime_core.cli.shardcast` calls it. A run is only read here: which steps are closed decides what is
fetched.
"""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Mapping
from types import FrameType
from typing import TYPE_CHECKING

from prime_core.shardcast.client import Client
from prime_core.shardcast.connection import RelayUnverified
from prime_core.shardcast.download import Download, VersionFailed
from prime_core.shardcast.folder import held
from prime_core.shardcast.following import follow
from prime_core.store.counter import StepRules
from prime_core.store.metrics import MetricsLog
from prime_core.store.objects import open_store
from prime_core.store.trace import Trace
from prime_core.store.view import StoreView

if TYPE_CHECKING:
    from prime_core.config.sections import RunConfig
    from prime_core.shardcast.incoming import Incoming

logger = logging.getLogger(__name__)

_SAY_EVERY_S = 5.0
_SHOW_EVERY_S = 0.2


def fetch_version(client: Client, version: int | None) -> Incoming:
    """Fetch one version, the newest whole one where none is named; tells its progress.

    Raises:
        VersionFailed: no relay has it, or gives it.
        RelayUnverified: no relay has a certificate that this machine accepts.
        StoreError: the directory is another's, or its disk can't hold the version.
    """
    with held(client.shelf.root):
        return _fetch(client, version)


def _fetch(client: Client, version: int | None) -> Incoming:
    client.shelf.recover()
    failures = client.probe()
    unverified = [each for each in failures.values() if isinstance(each, RelayUnverified)]
    if len(unverified) == len(client.relays.addresses):
        raise unverified[0]
    known = client.versions()
    if version is None:
        whole = [number for number, sealed in known.items() if sealed]
        if not whole:
            raise VersionFailed("no relay has a whole version")
        version = max(whole)
    elif version not in known and client.shelf.get(version) is None:
        patience = client.settings.stall_s
        until = time.strftime("%H:%M:%S", time.localtime(time.time() + patience))
        logger.warning(
            "version %d: no relay has it, they have %s; it's waited for until %s",
            version,
            f"{min(known)} to {max(known)}" if known else "none",
            until,
        )
    download = client.download(version)
    ended = threading.Event()
    teller = threading.Thread(target=_tell_progress, args=(download, ended), daemon=True)
    teller.start()
    try:
        return download.run()
    finally:
        ended.set()
        teller.join()


def _tell_progress(download: Download, ended: threading.Event) -> None:
    """A line that changes on a terminal, now and then a line in a log."""
    shown = sys.stderr.isatty()
    while not ended.wait(_SHOW_EVERY_S if shown else _SAY_EVERY_S):
        text = f"version {download.version}: {download.fraction:6.1%}"
        if shown:
            sys.stderr.write(f"\r{text}")
            sys.stderr.flush()
        else:
            logger.info("%s", text)
    if shown:
        sys.stderr.write(f"\rversion {download.version}: {download.fraction:6.1%}\n")


def follow_run(config: RunConfig, node: str, client: Client) -> None:
    """Fetch what a worker of this run needs until the run is over or SIGTERM; blocks.

    Raises:
        StoreError: the directory is another process's, signer's or run's.
    """
    process = f"client-{node}"
    rules = StepRules.from_config(config)
    view = StoreView(open_store(config), rules)
    metrics, trace = MetricsLog(config.run.dir, process), Trace(config.run.dir, process)
    stop, lock = threading.Event(), threading.Lock()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    def first_open() -> int:
        with lock:
            view.refresh()
            return view.first_open

    def tell(event: str, numbers: Mapping[str, float]) -> None:
        metrics.log(None, **{f"shardcast/{event}": 1}, **numbers)
        seconds = numbers.get("seconds", 0.0)
        trace.past("fetch", time.time() - seconds, seconds, version=numbers["version"], end=event)

    old = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with held(client.shelf.root):
            follow(client, rules, first_open, stop, tell)
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        metrics.close()
        trace.close()
