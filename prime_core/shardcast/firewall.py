"""The kernel's rules before a relay, for nftables and for UFW, from the same list of members.

`fronting` writes them. Whoever is banned is dropped first; proxies come before the limit, as each
of them brings many clients.
"""

from __future__ import annotations

from collections.abc import Sequence

from prime_core.shardcast.members import Members, Network

TABLE = "prime_shardcast"

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
    ip saddr @proxies4 accept
    ip6 saddr @proxies6 accept
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


def nft_rules(members: Members, proxies: Sequence[Network], port: str, requests_per_s: int) -> str:
    """The text of firewall.nft."""
    sets = ""
    lists = {
        "allowed": members.networks("active"),
        "denied": members.networks("banned"),
        "proxies": proxies,
    }
    for name, networks in lists.items():
        for version in (4, 6):
            listed = ", ".join(str(each) for each in networks if each.version == version)
            elements = f" elements = {{ {listed} }};" if listed else ""
            kind = f"type ipv{version}_addr; flags interval; auto-merge;"
            sets += f"  set {name}{version} {{ {kind}{elements} }}\n"
    limit = f"limit rate over {requests_per_s}/second burst {2 * requests_per_s} packets"
    return _NFT.format(table=TABLE, sets=sets, port=port, limit=limit)


def ufw_script(members: Members, proxies: Sequence[Network], port: str) -> str:
    """The text of ufw.sh, for hosts with UFW; to be run as a whole after each change."""
    mark = f"prime-shardcast-{port}"
    rules = [("deny", each) for each in members.networks("banned")]
    rules += [("allow", each) for each in (*proxies, *members.networks("active"))]
    listed = [f"{what} proto tcp from {each} to any port {port}" for what, each in rules]
    listed.append(f"deny proto tcp from any to any port {port}")
    return _UFW.format(mark=mark) + "".join(f"ufw {each} comment {mark}\n" for each in listed)
