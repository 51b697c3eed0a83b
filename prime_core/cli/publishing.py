"""`prime-core publish | index | install`: a signed, static index of distributions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_core.api.errors import PrimeError
    from prime_core.signing import Signer

LEVELS = click.Choice(("none", "bronze", "silver", "gold"))
KEY = click.option(
    "--key",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Publisher's key file; default is prime-core/publisher.key in your config directory.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
PUBLISHER = click.option(
    "--publisher",
    "publishers",
    multiple=True,
    metavar="0x...",
    help="Address whose signature counts; may be repeated.",
)


@click.command()
@click.argument("path", type=click.Path(path_type=Path, file_okay=False, exists=True))
@click.option("--to", "url", required=True, metavar="URL", help="Index: a folder or s3://...")
@click.option("--level", type=LEVELS, default="bronze", show_default=True,
              help="Level that the check must pass; none publishes unchecked.")  # fmt: skip
@click.option("--profile", type=click.Path(path_type=Path, dir_okay=False, exists=True),
              help="What `prime-core profile` wrote, for the catalogue.")  # fmt: skip
@KEY
@JSON
def publish(
    path: Path, url: str, level: str, profile: Path | None, key: Path | None, as_json: bool
) -> None:
    """Build, check and sign the distribution at PATH, and add it to an index."""
    from prime_core.publishing.publish import publish as add

    done = add(path, url, level=level, signer=_signer(key), profile=profile, tell=_tell)
    said = done.record
    _warn(done.problems)
    if as_json:
        click.echo(json.dumps({**said.model_dump(mode="json"), "publisher": done.publisher}))
        return
    click.echo(f"published {said.name} {said.version} at level {said.check.level}")
    click.echo(f"prime-core install {said.name} --from {url} --publisher {done.publisher}")


@click.group()
def index() -> None:
    """Build, serve, verify or copy an index, or withdraw a version."""


@index.command()
@click.argument("url")
def build(url: str) -> None:
    """Write every page of the index at URL anew from its records; starts an empty one."""
    from prime_core.publishing.index import Index

    found = Index(url).build()
    _warn(found)
    click.echo(f"built {url}")
    if found:
        raise SystemExit(1)


@index.command()
@click.argument("url")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8765, show_default=True,
              help="Port; 0 takes a free one.")  # fmt: skip
def serve(url: str, host: str, port: int) -> None:
    """Serve the index at URL to browsers and to pip, until Ctrl-C."""
    from prime_core.publishing.serve import make_server

    with make_server(url, host, port) as server:
        root = f"http://{host}:{server.server_address[1]}"
        click.echo(f"{root}/ for browsers, {root}/simple/ for pip")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("stopped")


@index.command()
@click.argument("url")
@PUBLISHER
@JSON
def verify(url: str, publishers: tuple[str, ...], as_json: bool) -> None:
    """Verify every signature, digest and page of the index at URL; exits 1 if one doesn't stand."""
    from prime_core.publishing.audit import stale
    from prime_core.publishing.audit import verify as look
    from prime_core.publishing.index import Index
    from prime_core.publishing.source import StoreSource, open_source

    source = open_source(url)
    audit = look(source, addresses(publishers))
    if isinstance(source, StoreSource):
        audit.problems += stale(Index(url))
    if as_json:
        problems = [{"what": each.what, "where": each.where} for each in audit.problems]
        _print({"projects": audit.projects, "versions": audit.versions, "problems": problems})
    else:
        _warn(audit.problems)
        click.echo(
            f"{audit.projects} projects, {audit.versions} versions, {len(audit.problems)} problems"
        )
    if audit.problems:
        raise SystemExit(1)


@index.command()
@click.option("--from", "url", required=True, metavar="URL", help="Index to copy; http too.")
@click.option("--to", "target", required=True, metavar="URL", help="A folder or s3://...")
def mirror(url: str, target: str) -> None:
    """Copy what verifies and isn't there yet; signatures stay those of the publishers."""
    from prime_core.publishing.audit import mirror as copy
    from prime_core.publishing.index import Index
    from prime_core.publishing.source import open_source

    problems: list[PrimeError] = []
    copied = copy(open_source(url), Index(target), problems)
    _warn(problems)
    click.echo(f"copied {copied} versions")
    if problems:
        raise SystemExit(1)


@index.command()
@click.argument("version", metavar="NAME==V")
@click.option("--to", "url", required=True, metavar="URL", help="The index.")
@click.option("--reason", required=True, help="Why; everybody reads it.")
@KEY
def yank(version: str, url: str, reason: str, key: Path | None) -> None:
    """Withdraw a version for good; it stays listed, as yanked."""
    from prime_core.publishing.index import Index
    from prime_core.signing import Signer

    name, _, number = version.partition("==")
    if not name or not number:
        raise click.BadParameter(f"{version!r} isn't NAME==V", param_hint="NAME==V")
    where = Index(url)
    where.yank(name.strip(), number.strip(), reason, Signer.load(_key(key)))
    _warn(where.build())
    click.echo(f"yanked {version}")


@click.command()
@click.argument("requirement", metavar="NAME[==V]")
@click.option("--from", "url", required=True, metavar="URL", help="Index: folder, s3:// or http.")
@PUBLISHER
@click.option("--config", "config_path", type=click.Path(path_type=Path),
              help="Run config whose [plugins] publishers and min_level count.")  # fmt: skip
@click.option("--min-level", type=LEVELS, help="Lowest level; default is the config's, or none.")
@click.option("--python", type=click.Path(path_type=Path), help="Interpreter to install for.")
@click.option("--target", type=click.Path(path_type=Path), help="Folder to install into.")
@click.option("--pre", is_flag=True, help="Prereleases will do.")
@click.option("--locked", is_flag=True, help="Hold pip to the versions of the check.")
@click.option("--dry-run", is_flag=True, help="Verify, and install nothing.")
@click.argument("pip_options", nargs=-1, type=click.UNPROCESSED)
def install(
    requirement: str,
    url: str,
    publishers: tuple[str, ...],
    config_path: Path | None,
    min_level: str | None,
    python: Path | None,
    target: Path | None,
    **flags: Any,
) -> None:
    """Verify a distribution of an index, then let pip install it. Options behind -- go to pip."""
    from prime_core.publishing.install import Place
    from prime_core.publishing.install import install as add
    from prime_core.publishing.resolve import Policy

    trusted, level = addresses(publishers), min_level or "none"
    if config_path is not None:
        from prime_core.config.load import load

        section = load(config_path, check_files=False).config.plugins
        trusted |= frozenset(section.publishers)
        level = min_level or section.min_level
    done = add(
        requirement,
        url,
        Policy(trusted, level, flags["pre"]),
        Place(python, target),
        locked=flags["locked"],
        dry_run=flags["dry_run"],
        pip_options=flags["pip_options"],
        tell=_tell,
    )
    names = ", ".join(f"{each.record.value.name} {each.record.value.version}" for each in done)
    click.echo(f"{'would install' if flags['dry_run'] else 'installed'} {names}")


def _key(path: Path | None) -> Path:
    from prime_core.publishing.publish import default_key

    return path or default_key()


def _signer(path: Path | None) -> Signer:
    from prime_core.publishing.publish import publisher

    return publisher(_key(path), _tell)


def addresses(given: tuple[str, ...]) -> frozenset[str]:
    """The addresses of `--publisher`, in small letters; click.BadParameter where one is none."""
    import re

    for each in given:
        if not re.fullmatch(r"0x[0-9a-fA-F]{40}", each):
            raise click.BadParameter(f"{each!r} is no address", param_hint="--publisher")
    return frozenset(each.lower() for each in given)


def _tell(line: str) -> None:
    click.echo(line, err=True)


def _warn(problems: Sequence[PrimeError]) -> None:
    for problem in problems:
        click.echo(f"left out: {problem}", err=True)


def _print(value: object) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
