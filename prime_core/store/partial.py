"""A policy version's messages as they come in: header, lines so far, seal, each verified at once.

Relays, clients and `sealed` feed it message by message. What it holds has passed the signature, the
chain and the limits, so that a shard can be judged by its line before the version is whole.
"""

from __future__ import annotations

from prime_core.api.errors import FormatError, IntegrityError
from prime_core.signing import read_signed
from prime_core.store import layout, manifest
from prime_core.store.manifest import Header, Manifest, Shard

# More than any model this engine trains; a caller that knows its model passes less.
MAX_BYTES = 2**40
LINE_LIMIT = 4096


class ManifestReader:
    """The verified prefix of one version's messages.

    Message 0 is the header, messages 1 to n are the lines of shards 0 to n - 1, message n + 1 is
    the seal.

    Args:
        version: the policy version.
        signer: the address that must have signed; None for whoever signed the header.
        run_id: the run that the version must be of; None for any.
        max_bytes: a header that says more is refused.
    """

    def __init__(
        self,
        version: int,
        signer: str | None,
        *,
        run_id: str | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        self.version = version
        self._signer = signer
        self._run_id = run_id
        self._max_bytes = max_bytes
        self._header: Header | None = None
        self._previous = b""
        self._manifest: Manifest | None = None
        self.shards: list[Shard] = []
        self.messages: list[bytes] = []

    @property
    def begun(self) -> bool:
        """Whether the header is here."""
        return self._header is not None

    @property
    def sealed(self) -> bool:
        """Whether the seal is here, so that nothing more can come."""
        return self._manifest is not None

    @property
    def signer(self) -> str:
        """Who signed the header; only once `begun`."""
        assert self._signer is not None, "the header hasn't come"
        return self._signer

    @property
    def header(self) -> Header:
        """The header; only once `begun`."""
        assert self._header is not None, "the header hasn't come"
        return self._header

    @property
    def manifest(self) -> Manifest:
        """All messages; only once `sealed`."""
        assert self._manifest is not None, "the seal hasn't come"
        return self._manifest

    def next_path(self) -> str:
        """The object path of the message that comes next."""
        index = len(self.messages)
        if index == 0:
            return layout.policy_header_path(self.version)
        if index <= self.header.shard_count:
            return layout.policy_line_path(self.version, index - 1)
        return layout.policy_seal_path(self.version)

    def feed(self, data: bytes) -> None:
        """Take the next message; nothing changes where it's refused.

        Raises:
            FormatError: not a message of its place, or one beyond the limits.
            IntegrityError: of another signer, run or version, or not what follows the last one.
        """
        assert not self.sealed, "nothing follows the seal"
        path = self.next_path()
        try:
            if self._header is None:
                self._take_header(data)
            elif len(self.shards) < self._header.shard_count:
                self._take_line(data, self._header)
            else:
                self._take_seal(data, self._header)
        except (FormatError, IntegrityError) as error:
            raise type(error)(error.what, where=path, fix=error.fix) from error
        self.messages.append(data)

    def _take_header(self, data: bytes) -> None:
        signed = read_signed(data, self._signer)
        header = Header.parse(signed.payload, self.version, self._max_bytes)
        if header.payload() != signed.payload:
            raise FormatError("header has fields of another schema", fix="use its own version")
        if self._run_id is not None and header.run_id != self._run_id:
            raise IntegrityError(
                f"header of run {header.run_id[:80]!r}, expected {self._run_id!r}",
                fix="use the origin and the run id of one run",
            )
        self._header, self._signer = header, signed.signer
        self._previous = manifest.chain(signed.payload)

    def _take_line(self, data: bytes, header: Header) -> None:
        if len(data) > LINE_LIMIT:
            raise FormatError(f"line holds more than {LINE_LIMIT} bytes")
        payload = read_signed(data, self._signer).payload
        self.shards.append(manifest.parse_line(payload, header, len(self.shards), self._previous))
        self._previous = manifest.chain(payload)

    def _take_seal(self, data: bytes, header: Header) -> None:
        if len(data) > LINE_LIMIT:
            raise FormatError(f"seal holds more than {LINE_LIMIT} bytes")
        seal = read_signed(data, self._signer).payload
        fields = ("shards", "digest", "assembled_sha256")
        manifest.expect(seal, manifest.SEAL_SCHEMA, self.version, fields)
        assembled = manifest.optional_hash(seal, "assembled_sha256")
        if seal != manifest.seal_payload(header, self.shards, assembled):
            raise IntegrityError("seal isn't that of these shards", fix="fetch it again")
        assert self._signer is not None
        digest = bytes.fromhex(seal["digest"])
        self._manifest = Manifest(header, tuple(self.shards), digest, assembled, self._signer)
