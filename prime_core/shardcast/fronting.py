"""What stands before a relay on the open network: nginx, and the kernel's firewall.

`prime-core relay --nginx DIR` writes the files and keeps them in step with the members. A reload
lets running transfers end; lists change by a rename, so that nginx and nft never read half of one.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import shutil
import signal
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from prime_core.api.errors import FormatError, PrimeError, RunError
from prime_core.shardcast.addresses import split_address
from prime_core.shardcast.firewall import nft_rules, ufw_script
from prime_core.shardcast.members import Members, Network, parse_network, read_members
from prime_core.shardcast.nginx import geo, nginx_config

logger = logging.getLogger(__name__)

LOOK_S = 1.0
RETRY_S = 10.0  # after what failed


@dataclass(frozen=True, slots=True)
class Front:
    """How a relay is put behind nginx.

    Attributes:
        directory: where the files are written.
        listen: HOST:PORT that strangers connect to.
        relay: HOST:PORT of the relay itself, on loopback.
        certificate, key: for TLS; None for plain HTTP.
        proxies: networks whose `X-Forwarded-For` is believed.
        requests_per_s, connections: of one address.
        enforced: whether this process applies the firewall's rules itself; takes root.
    """

    directory: Path
    listen: str
    relay: str
    certificate: Path | None = None
    key: Path | None = None
    proxies: tuple[str, ...] = ()
    requests_per_s: int = 100
    connections: int = 64
    enforced: bool = False

    def __post_init__(self) -> None:
        # nginx takes a relative path from a directory of its own.
        for name in ("directory", "certificate", "key"):
            path = getattr(self, name)
            object.__setattr__(self, name, None if path is None else path.absolute())

    @property
    def config(self) -> Path:
        """The file for `nginx -c`."""
        return self.directory / "nginx.conf"

    @property
    def firewall(self) -> Path:
        """The file for `nft -f`."""
        return self.directory / "firewall.nft"

    def check(self) -> None:
        """Refuse what can't hold, before anything is written.

        Raises:
            FormatError: an address or a proxy is none, or half of TLS is missing.
            RunError: certificate or key aren't there, or strangers could go around nginx.
        """
        split_address(self.listen)
        host, port = split_address(self.relay)
        if not _loopback(host):
            raise RunError(
                f"with --nginx, a relay at {self.relay} could be reached around nginx",
                fix=f"give --listen 127.0.0.1:{port}",
            )
        self._networks()
        if (self.certificate is None) != (self.key is None):
            lacking = "--key" if self.key is None else "--certificate"
            raise FormatError("TLS takes a certificate and its key", fix=f"give {lacking} as well")
        for path in (self.certificate, self.key):
            if path is not None and not path.is_file():
                raise RunError("no such file", where=str(path), fix="name the file for TLS")

    def write(self, members: Members) -> None:
        """Write every file; those of the members alone change later.

        Raises:
            RunError: the directory can't be written.
        """
        proxies, port = self._networks(), self.listen.rpartition(":")[2]
        tls = None if self.certificate is None or self.key is None else (self.certificate, self.key)
        config = nginx_config(
            self.directory,
            self.listen,
            self.relay,
            tls,
            proxies,
            requests_per_s=self.requests_per_s,
            connections=self.connections,
        )
        try:
            (self.directory / "tmp").mkdir(parents=True, exist_ok=True)
            self._put("nginx.conf", config)
            self._put("allowed.conf", geo(members.networks("active")))
            self._put("denied.conf", geo(members.networks("banned")))
            self._put("firewall.nft", nft_rules(members, proxies, port, self.requests_per_s))
            self._put("ufw.sh", ufw_script(members, proxies, port))
        except OSError as error:
            raise RunError(
                f"the configuration can't be written: {error.strerror}", where=str(self.directory)
            ) from error

    def enforce(self) -> None:
        """Replace the firewall's table by the file's, in one transaction, where that is wanted.

        Raises:
            RunError: nft isn't there or refuses; the rules stay as they were.
        """
        if not self.enforced:
            return
        done = subprocess.run(
            [_program("nft"), "-f", self.firewall], capture_output=True, text=True
        )
        if done.returncode != 0:
            raise RunError(
                f"nft refuses the rules: {done.stderr.strip()}",
                where=str(self.firewall),
                fix="run the relay as root, or without --firewall",
            )

    def reload(self) -> bool:
        """Have a running nginx take the lists in; running transfers end as they are. False: none.

        Raises:
            RunError: nginx refuses the configuration; the running one stays as it is.
        """
        pid = _running(self.directory / "nginx.pid")
        if pid is None:
            return False
        test = [_program("nginx"), "-t", "-q", "-c", str(self.config)]
        done = subprocess.run(test, capture_output=True, text=True)
        if done.returncode != 0:
            raise RunError(f"nginx refuses it: {done.stderr.strip()}", where=str(self.config))
        try:
            os.kill(pid, signal.SIGHUP)
        except ProcessLookupError:
            return False
        except PermissionError as error:
            raise RunError(
                f"nginx (pid {pid}) runs as another user, so that it isn't reloaded",
                where=str(self.config),
                fix="run the relay as the user that runs nginx",
            ) from error
        return True

    def follow(self, path: Path, stop: threading.Event) -> None:
        """Keep everything in step with `members.json` until `stop`; blocks.

        All of it is done once at first: the file may have changed since it was read, and a running
        nginx may have the lists of an earlier relay. What fails is tried again.
        """
        done: object = ()  # what the file was when all of it was done
        failed: object = ()
        told, again = "", 0.0
        while not stop.wait(LOOK_S):
            state, now = _state(path), time.monotonic()
            if state == done or (state == failed and now < again):
                continue
            try:
                reloaded = self._apply(path)
            except PrimeError as error:
                if str(error) != told:
                    logger.warning("members.json isn't in force, and is tried again: %s", error)
                failed, again, told = state, now + RETRY_S, str(error)
            except Exception:  # whoever is banned later must still be kept out
                logger.exception("members.json isn't in force, and is tried again")
                failed, again = state, now + RETRY_S
            else:
                done, told = state, ""
                logger.info("members.json is in force; nginx %s", reloaded)

    def _apply(self, path: Path) -> str:
        """Write the files and have nginx and nft take them in, each though the other fails."""
        self.write(read_members(path))
        try:
            self.enforce()
        finally:
            reloaded = self.reload()
        return "reloads" if reloaded else "isn't running"

    def _networks(self) -> list[Network]:
        found = [parse_network(each) for each in self.proxies]
        if None in found:
            raise FormatError(
                f"{self.proxies[found.index(None)]!r} is no network",
                where="--proxy",
                fix="write an IPv4 or IPv6 address or network, without a zone",
            )
        return [each for each in found if each is not None]

    def _put(self, name: str, text: str) -> None:
        temporary = self.directory / f".{name}"
        temporary.write_text(text)
        temporary.rename(self.directory / name)


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _running(path: Path) -> int | None:
    """The pid in a file, where an nginx has it now: it may be stale, and another's since."""
    try:
        pid = int(path.read_text())
        name = Path(f"/proc/{pid}/comm").read_text()
    except (OSError, ValueError):
        return None
    return pid if name.startswith("nginx") else None


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise RunError(f"{name} isn't installed", fix=f"apt install {name}")
    return found


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
