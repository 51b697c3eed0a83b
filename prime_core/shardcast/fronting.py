"""What stands before a relay on the open network: nginx, and the kernel's firewall.

`prime-core relay --nginx DIR` writes the files and keeps them in step with the members. A reload
lets running transfers end; lists change by a rename, so that nginx and nft never read half of one.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from prime_core.api.errors import PrimeError, RunError
from prime_core.shardcast.members import Members, Network, read_members

logger = logging.getLogger(__name__)

LOOK_S = 1.0
TABLE = "prime_shardcast"

_NGINX = """\
# Written by `prime-core relay --nginx`; allowed.conf and denied.conf follow members.json.
{user}worker_processes auto;
worker_rlimit_nofile 16384;
pid {dir}/nginx.pid;
error_log {dir}/error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  server_tokens off;
  tcp_nopush on;
  client_body_temp_path {dir}/tmp; proxy_temp_path {dir}/tmp; fastcgi_temp_path {dir}/tmp;
  uwsgi_temp_path {dir}/tmp; scgi_temp_path {dir}/tmp;
  client_header_timeout 10s;
  client_body_timeout 10s;
  client_max_body_size 1;
  large_client_header_buffers 4 2k;
  keepalive_timeout 60s;
  keepalive_requests 100000;
  send_timeout 30s;
  reset_timedout_connection on;
{proxies}  geo $prime_allowed {{ default 0; include {dir}/allowed.conf; }}
  geo $prime_denied {{ default 0; include {dir}/denied.conf; }}
  limit_req_zone $binary_remote_addr zone=prime_requests:10m rate={rate}r/s;
  limit_conn_zone $binary_remote_addr zone=prime_connections:10m;
  limit_req_status 429;
  limit_conn_status 429;
  upstream prime_relay {{ server {relay}; keepalive 64; }}
  server {{
    listen {listen};
{tls}    limit_req zone=prime_requests burst={burst} nodelay;
    limit_conn prime_connections {connections};
    location ~ "{paths}" {{
      if ($prime_denied) {{ return 403; }}
      if ($prime_allowed = 0) {{ return 403; }}
      limit_except GET {{ deny all; }}
      proxy_pass http://prime_relay;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering on;
      proxy_max_temp_file_size 0;
      proxy_read_timeout 60s;
    }}
    location / {{ return 404; }}
  }}
}}
"""

# What a relay serves; /metrics isn't among it.
_SHARD = r"shard-[0-9]{5,6}\.(bin|delta-[0-9]{6,10})"
_PATHS = rf"^/(versions|probe\.bin|health|policies/[0-9]{{6,10}}/(manifest|{_SHARD}))$"

_NFT = """\
# Written by `prime-core relay --nginx`; apply with `nft -f`, which replaces the table at once.
table inet {table}
delete table inet {table}
table inet {table} {{
{sets}  set flood4 {{ type ipv4_addr; size 65536; flags dynamic, timeout; timeout 1m; }}
  set flood6 {{ type ipv6_addr; size 65536; flags dynamic, timeout; timeout 1m; }}
  chain input {{
    type filter hook input priority -10; policy accept;
    tcp dport != {port} accept
    ip saddr @denied4 drop
    ip6 saddr @denied6 drop
    ct state established,related accept
    ct state new add @flood4 {{ ip saddr {limit} }} drop
    ct state new add @flood6 {{ ip6 saddr {limit} }} drop
    ip saddr @allowed4 accept
    ip6 saddr @allowed6 accept
    drop
  }}
}}
"""

# UFW takes the first rule that fits, so that a new member's must not come after the last one, and
# keeps what isn't deleted. Between the two halves its default holds; open connections go on.
_UFW = """\
#!/bin/sh -e
# Written by `prime-core relay --nginx`; replaces the rules that it added before.
ufw show added | grep "comment '{mark}'$" | while read -r program rule; do
  "$program" --force delete ${{rule%% comment *}}
done
"""


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

    @property
    def config(self) -> Path:
        """The file for `nginx -c`."""
        return self.directory / "nginx.conf"

    @property
    def firewall(self) -> Path:
        """The file for `nft -f`."""
        return self.directory / "firewall.nft"

    def write(self, members: Members) -> None:
        """Write every file; those of the members alone change later.

        Raises:
            RunError: the directory can't be written.
        """
        try:
            (self.directory / "tmp").mkdir(parents=True, exist_ok=True)
            self._put("nginx.conf", self._nginx())
            self._put("allowed.conf", _geo(members.networks("active")))
            self._put("denied.conf", _geo(members.networks("banned")))
            self._put("firewall.nft", self._nft(members))
            self._put("ufw.sh", self._ufw(members))
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
        try:
            pid = int((self.directory / "nginx.pid").read_text())
        except (OSError, ValueError):
            return False
        test = [_program("nginx"), "-t", "-q", "-c", str(self.config)]
        done = subprocess.run(test, capture_output=True, text=True)
        if done.returncode != 0:
            raise RunError(f"nginx refuses it: {done.stderr.strip()}", where=str(self.config))
        os.kill(pid, signal.SIGHUP)
        return True

    def follow(self, path: Path, stop: threading.Event) -> None:
        """Keep everything in step with `members.json` until `stop`; blocks."""
        seen = _state(path)
        while not stop.wait(LOOK_S):
            state = _state(path)
            if state == seen:
                continue
            seen = state
            try:
                self.write(read_members(path))
                self.enforce()
                reloaded = self.reload()
            except PrimeError as error:
                logger.warning("members stay as they were: %s", error)
            else:
                logger.info("members changed; nginx %s", "reloads" if reloaded else "isn't running")

    def _nginx(self) -> str:
        tls = ""
        listen = self.listen
        if self.certificate is not None and self.key is not None:
            listen += " ssl"
            tls = (
                f"    ssl_certificate {self.certificate};\n    ssl_certificate_key {self.key};\n"
                "    ssl_protocols TLSv1.2 TLSv1.3;\n"
            )
        proxies = "".join(f"  set_real_ip_from {each};\n" for each in self.proxies)
        if proxies:
            proxies += "  real_ip_header X-Forwarded-For;\n  real_ip_recursive on;\n"
        return _NGINX.format(
            paths=_PATHS,
            dir=self.directory.resolve(),
            user="user root;\n" if os.geteuid() == 0 else "",
            proxies=proxies,
            rate=self.requests_per_s,
            burst=2 * self.requests_per_s,
            connections=self.connections,
            relay=self.relay,
            listen=listen,
            tls=tls,
        )

    def _nft(self, members: Members) -> str:
        sets = ""
        lists = {"allowed": members.networks("active"), "denied": members.networks("banned")}
        for name, networks in lists.items():
            for version in (4, 6):
                listed = ", ".join(str(each) for each in networks if each.version == version)
                elements = f" elements = {{ {listed} }};" if listed else ""
                kind = f"type ipv{version}_addr; flags interval; auto-merge;"
                sets += f"  set {name}{version} {{ {kind}{elements} }}\n"
        return _NFT.format(
            table=TABLE,
            sets=sets,
            port=self._port,
            limit=f"limit rate over {self.requests_per_s}/second "
            f"burst {2 * self.requests_per_s} packets",
        )

    def _ufw(self, members: Members) -> str:
        """The same for hosts with UFW; run it as a whole after each change."""
        port, mark = self._port, f"prime-shardcast-{self._port}"
        rules = [("deny", each) for each in members.networks("banned")]
        rules += [("allow", each) for each in members.networks("active")]
        listed = [f"{what} proto tcp from {each} to any port {port}" for what, each in rules]
        listed.append(f"deny proto tcp from any to any port {port}")
        added = "".join(f"ufw {each} comment {mark}\n" for each in listed)
        return _UFW.format(mark=mark) + added

    @property
    def _port(self) -> str:
        return self.listen.rpartition(":")[2]

    def _put(self, name: str, text: str) -> None:
        temporary = self.directory / f".{name}"
        temporary.write_text(text)
        temporary.rename(self.directory / name)


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise RunError(f"{name} isn't installed", fix=f"apt install {name}")
    return found


def _geo(networks: list[Network]) -> str:
    return "".join(f"{each} 1;\n" for each in networks)


def _state(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
