"""`members.json`: who may take policies from a relay, and who may not.

An operator or an orchestrator keeps the file; `fronting` turns it into nginx lists and firewall
rules. Read strictly: a list that can't be read changes nothing.
"""

from __future__ import annotations

import ipaddress
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from prime_core.api.errors import FormatError, StoreError

SCHEMA = "prime-core/members/1"
LIMIT = 16 * 2**20

Status = Literal["active", "left", "banned"]
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_ADDRESS = re.compile(r"0x[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Member:
    """One node: the address of its key, where it connects from, and whether it may."""

    address: str
    network: Network
    status: Status


@dataclass(frozen=True, slots=True)
class Members:
    """All nodes of a pool."""

    entries: tuple[Member, ...] = ()

    def networks(self, status: Status) -> list[Network]:
        """Where nodes of a status connect from, each once, in order.

        A network that also holds a banned node isn't active: whoever was banned doesn't come back
        under another key.
        """
        banned = {each.network for each in self.entries if each.status == "banned"}
        found = {each.network for each in self.entries if each.status == status}
        if status != "banned":
            found -= banned
        return sorted(found, key=lambda each: (each.version, each))


def parse_members(data: bytes) -> Members:
    """Read `members.json`; FormatError says which entry is wrong."""
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError("not JSON", fix="write it again") from error
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise FormatError(f"not a list of schema {SCHEMA}", fix=f'set "schema": "{SCHEMA}"')
    entries = document.get("members")
    if document.keys() != {"schema", "members"} or not isinstance(entries, list):
        raise FormatError('it holds other things than "schema" and "members"')
    return Members(tuple(_member(entry, number) for number, entry in enumerate(entries)))


def read_members(path: Path) -> Members:
    """Read the file; StoreError where it can't be, FormatError as `parse_members`."""
    try:
        with path.open("rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise StoreError(
            f"members can't be read: {error.strerror}", where=str(path), fix="write the file"
        ) from error
    if len(data) > LIMIT:
        raise FormatError(f"more than {LIMIT} bytes", where=str(path))
    try:
        return parse_members(data)
    except FormatError as error:
        raise FormatError(error.what, where=str(path), fix=error.fix) from error


def _member(entry: object, number: int) -> Member:
    where = f"members[{number}]"
    if not isinstance(entry, dict) or entry.keys() != {"address", "ip", "status"}:
        raise FormatError(f"{where} isn't an object of address, ip and status")
    address, ip, status = entry["address"], entry["ip"], entry["status"]
    if not isinstance(address, str) or not _ADDRESS.fullmatch(address):
        raise FormatError(f"{where} has no address", fix="write 0x and 40 lower-case hex digits")
    if status not in get_args(Status):
        raise FormatError(f"{where} has no status", fix="write active, left or banned")
    network = parse_network(ip) if isinstance(ip, str) else None
    if network is None:
        raise FormatError(
            f"{where} has no ip",
            fix="write an IPv4 or IPv6 address or network, without a zone",
        )
    return Member(address, network, status)


def parse_network(text: str) -> Network | None:
    """An address or a network that isn't all of them; None where it isn't one.

    `ipaddress` takes any text for an IPv6 zone and keeps it, so that there's none here.
    """
    try:
        network = ipaddress.ip_network(text) if "%" not in text else None
    except ValueError:
        return None
    return None if network is None or network.prefixlen == 0 else network
