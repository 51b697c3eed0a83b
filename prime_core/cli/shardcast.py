"""`prime-core origin | relay | fetch`: policy versions over HTTP, from a run to any machine.

The supervisor starts all three where a run has `[shardcast] mode = "tree"`; elsewhere a person.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from prime_core.shardcast.serving import Listening

LISTEN = click.option(
    "--listen", default="127.0.0.1:8470", show_default=True, help="HOST:PORT to serve at."
)
METRICS = click.option("--metrics", default=None, help="HOST:PORT of /metrics; off unless given.")
SUPERVISOR = click.option(
    "--supervisor", type=int, default=None, help="Pid to die with; set by `prime-core train`."
)
SIGNER = click.option(
    "--signer", required=True, help="Address of the trainer's key: 0x and 40 hex digits."
)
RUN_ID = click.option("--run-id", required=True, help="Id of the run, as the origin logs it.")
RATE = click.option(
    "--rate",
    default=1000.0,
    show_default=True,
    help="Requests a second that one address may make; with --nginx, nginx counts them.",
)
CONNECTIONS = click.option(
    "--connections", default=3, show_default=True, help="Shards under way at once."
)
DELTAS = click.option(
    "--deltas", is_flag=True, help="Send or ask for what changed since a version that is there."
)


@click.command()
@click.argument("run_dir", type=click.Path(exists=True, path_type=Path), metavar="RUN")
@LISTEN
@METRICS
@RATE
@DELTAS
@SUPERVISOR
def origin(
    run_dir: Path,
    listen: str,
    metrics: str | None,
    rate: float,
    deltas: bool,
    supervisor: int | None,
) -> None:
    """Serve a run's policy versions, each from its first shard on.

    RUN is a run's directory or its run.toml.
    """
    from prime_core.config.load import load_run
    from prime_core.run.supervisor import run_directory
    from prime_core.shardcast.serving import run_origin
    from prime_core.store.layout import RUN
    from prime_core.store.objects import open_store

    _start(supervisor)
    config = load_run(run_directory(run_dir) / RUN)
    run_origin(open_store(config), _listening(listen, metrics, rate, deltas))


@click.command()
@click.option("--upstream", required=True, help="URLs of origins or relays, comma-separated.")
@click.option(
    "--dir", "directory", required=True, type=click.Path(path_type=Path), help="For its versions."
)
@SIGNER
@RUN_ID
@LISTEN
@METRICS
@RATE
@click.option("--keep", default=5, show_default=True, help="Newest versions kept.")
@click.option("--disk-gb", type=float, default=None, help="Most that all versions may take.")
@CONNECTIONS
@DELTAS
@click.option(
    "--nginx",
    "front",
    type=click.Path(path_type=Path),
    help="Write nginx.conf and firewall files into this directory.",
)
@click.option("--public", default="0.0.0.0:443", show_default=True, help="Where nginx listens.")
@click.option(
    "--members", type=click.Path(path_type=Path), help="members.json, followed while it runs."
)
@click.option("--certificate", type=click.Path(path_type=Path), help="For TLS, with --key.")
@click.option("--key", type=click.Path(path_type=Path), help="For TLS, with --certificate.")
@click.option("--firewall", is_flag=True, help="Apply firewall.nft on every change; takes root.")
@click.option("--proxy", multiple=True, help="Network whose X-Forwarded-For is believed.")
@SUPERVISOR
def relay(
    upstream: str,
    directory: Path,
    signer: str,
    run_id: str,
    listen: str,
    metrics: str | None,
    rate: float,
    keep: int,
    disk_gb: float | None,
    connections: int,
    deltas: bool,
    front: Path | None,
    public: str,
    members: Path | None,
    certificate: Path | None,
    key: Path | None,
    firewall: bool,
    proxy: tuple[str, ...],
    supervisor: int | None,
) -> None:
    """Relay policy versions: every shard is checked before it's served."""
    from prime_core.shardcast.download import Settings
    from prime_core.shardcast.fronting import Front
    from prime_core.shardcast.serving import run_relay

    _start(supervisor)
    before = None
    if front is not None:
        allowed = max(1, int(rate))
        before = Front(
            front,
            public,
            listen,
            certificate,
            key,
            proxy,
            requests_per_s=allowed,
            enforced=firewall,
        )
        rate = 0.0  # all requests come from nginx, which counts each address
    run_relay(
        _addresses(upstream),
        directory,
        _signer(signer),
        run_id,
        _listening(listen, metrics, rate, deltas),
        keep=keep,
        budget=None if disk_gb is None else int(disk_gb * 1e9),
        settings=Settings(connections=connections, deltas=deltas),
        front=before,
        members=members,
    )


@click.command()
@click.argument("version", type=click.IntRange(0, 2**31 - 1), required=False)
@click.option("--relays", required=True, help="URLs of relays, comma-separated.")
@click.option(
    "--dir", "directory", required=True, type=click.Path(path_type=Path), help="For its versions."
)
@SIGNER
@RUN_ID
@click.option("--connections", default=6, show_default=True, help="Shards under way at once.")
@DELTAS
@click.option(
    "--follow",
    type=click.Path(exists=True, path_type=Path),
    metavar="RUN",
    help="Fetch every version that an unclosed step of this run can use, until it's over.",
)
@click.option("--node", default="client", show_default=True, help="Name in metrics and trace.")
@SUPERVISOR
def fetch(
    version: int | None,
    relays: str,
    directory: Path,
    signer: str,
    run_id: str,
    connections: int,
    deltas: bool,
    follow: Path | None,
    node: str,
    supervisor: int | None,
) -> None:
    """Fetch a policy VERSION from relays, every byte checked; the newest whole one unless given."""
    from prime_core.shardcast import fetching
    from prime_core.shardcast.client import Client
    from prime_core.shardcast.download import Settings
    from prime_core.shardcast.shelf import Shelf

    _start(supervisor)
    shelf = Shelf(directory, _signer(signer), run_id)
    settings = Settings(connections=connections, deltas=deltas)
    client = Client(_addresses(relays), shelf, settings=settings)
    if follow is not None:
        from prime_core.config.load import load_run
        from prime_core.run.supervisor import run_directory
        from prime_core.store.layout import RUN

        fetching.follow_run(load_run(run_directory(follow) / RUN), node, client)
        return
    found = fetching.fetch_version(client, version)
    click.echo(str(found.weights))


def _start(supervisor: int | None) -> None:
    import logging

    from prime_core.run.lifeline import die_with_parent

    logging.basicConfig(
        level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    die_with_parent(supervisor)


def _listening(listen: str, metrics: str | None, rate: float, deltas: bool) -> Listening:
    from prime_core.shardcast.server import Limits
    from prime_core.shardcast.serving import Listening

    return Listening(listen, metrics, Limits(requests_per_s=rate, deltas=deltas))


def _addresses(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _signer(text: str) -> str:
    import re

    from prime_core.api.errors import FormatError

    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", text):
        raise FormatError(f"{text!r} is no address", fix="write 0x and 40 hexadecimal digits")
    return text.lower()
