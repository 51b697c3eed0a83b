"""What can go wrong with one relay; `connection` raises it, downloads and listeners judge by it."""

from __future__ import annotations

from prime_core.api.errors import PrimeError


class RelayError(PrimeError):
    """A relay that can't be reached, is too slow, or breaks off."""


class RelayLied(RelayError):
    """A relay that sent what can't be right: another size, hash, signature or answer."""


class RelayLacks(RelayError):
    """A relay that hasn't got it: not yet, not any more (`gone`), or it's busy."""

    def __init__(self, what: str, *, where: str, gone: bool = False) -> None:
        self.gone = gone
        super().__init__(what, where=where)


class RelayUnverified(RelayError):
    """A relay whose TLS certificate this machine doesn't accept; asking again won't help."""

    def __init__(self, why: str, *, where: str) -> None:
        super().__init__(
            f"its certificate can't be verified: {why}",
            where=where,
            fix="serve one of an authority that this machine trusts, for the host in the relay's "
            "URL, or name the authority's file in SSL_CERT_FILE here",
        )


class Cancelled(Exception):
    """The caller doesn't want the bytes any more."""
