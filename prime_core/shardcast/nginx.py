"""The nginx configuration before a relay: what it lets through, to whom, and how often.

`fronting` writes it. The lists of members are files of their own, which it includes, so that a
change of theirs changes nothing here.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from prime_core.shardcast.members import Network

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


def nginx_config(
    directory: Path,
    listen: str,
    relay: str,
    tls: tuple[Path, Path] | None,
    proxies: Sequence[Network],
    *,
    requests_per_s: int,
    connections: int,
) -> str:
    """The text of nginx.conf.

    Args:
        directory: of its lists, pid and logs.
        listen, relay: HOST:PORT of nginx and of the relay behind it.
        tls: certificate and key.
        proxies: whose `X-Forwarded-For` is believed.
        requests_per_s, connections: of one address.
    """
    served = ""
    if tls is not None:
        listen += " ssl"
        served = (
            f"    ssl_certificate {tls[0]};\n    ssl_certificate_key {tls[1]};\n"
            "    ssl_protocols TLSv1.2 TLSv1.3;\n"
        )
    trusted = "".join(f"  set_real_ip_from {each};\n" for each in proxies)
    if trusted:
        trusted += "  real_ip_header X-Forwarded-For;\n  real_ip_recursive on;\n"
    return _NGINX.format(
        paths=_PATHS,
        dir=directory,
        user="user root;\n" if os.geteuid() == 0 else "",
        proxies=trusted,
        rate=requests_per_s,
        burst=2 * requests_per_s,
        connections=connections,
        relay=relay,
        listen=listen,
        tls=served,
    )


def geo(networks: Sequence[Network]) -> str:
    """The text of allowed.conf or denied.conf."""
    return "".join(f"{each} 1;\n" for each in networks)
