"""A tunnel's bytes sealed by its two ends in large records, once TLS has shown each the other.

TLS cuts what it is given into 16 KiB, and OpenSSL copies each of them three times on its way. Here a record takes what
one call of the kernel brings, and is sealed from there into what is sent. AES-256-GCM (NIST SP 800-38D) with a key for
each direction, by HKDF-SHA256 (RFC 5869) from a seed that the renter draws for this tunnel and says inside TLS 1.3; so
nobody who learns a key of TLS's later reads any of it. A record is

    four bytes: the length of its content    its content, sealed    16 bytes: the tag of it and of the four bytes

and its nonce is its number, so that one that is changed, repeated, left out or comes out of order does not open.
"""

import socket
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

SEALED: Final = "windrow-sealed/1"
"""The name (ALPN, RFC 7301) by which a renter says that it can seal and a host that it does. TLS proves what was said,
so that nobody between them can have them do without."""
SEED_BYTES: Final = 32
HEAD_BYTES: Final = 4
TAG_BYTES: Final = 16
NONCE_BYTES: Final = 12
PLAIN_BYTES: Final = 256 * 1024
"""The content of one record. From 128 KiB on the cipher's time for a byte falls no further; twice as much would leave
the processor's cache together with its copies."""
RECORDS_PER_KEY: Final = 1 << 19
"""128 GiB: a third of what TLS allows a key of this cipher (RFC 8446, 5.5)."""


class _Keys:
    """The keys of one direction, each for so many records; the next is made of the same secret, which is forgotten."""

    def __init__(self, seed: bytes, whose: bytes, records: int) -> None:
        self._secret, self._count, self._records = seed, 0, records
        self._renew(whose)

    def next(self) -> tuple[AESGCM, bytes]:
        """Return the cipher and the nonce of the next record."""
        if self._count and not self._count % self._records:
            self._renew(b"next")
        nonce = self._count.to_bytes(NONCE_BYTES, "big")
        self._count += 1
        return self._cipher, nonce

    def _renew(self, why: bytes) -> None:
        self._secret = _derived(self._secret, why)
        self._cipher = AESGCM(_derived(self._secret, b"key"))


def _derived(secret: bytes, what: bytes) -> bytes:
    info = b"windrow-sealed/1|" + what
    return HKDF(algorithm=hashes.SHA256(), length=SEED_BYTES, salt=None, info=info).derive(secret)


class SealedEnd:
    """One end of a tunnel after its greeting. `raw` is watched by its caller."""

    plain_bytes = PLAIN_BYTES
    buffer_bytes = PLAIN_BYTES + HEAD_BYTES

    def __init__(
        self,
        raw: socket.socket,
        seed: bytes,
        came: bytes = b"",
        *,
        is_host: bool,
        records_per_key: int = RECORDS_PER_KEY,
    ) -> None:
        """raw: does not block, and is closed with this. came: the bytes that have followed the seed."""
        self.raw = raw
        own, other = (b"host", b"renter") if is_host else (b"renter", b"host")
        self._own, self._other = _Keys(seed, own, records_per_key), _Keys(seed, other, records_per_key)
        self._out = memoryview(bytearray(HEAD_BYTES + PLAIN_BYTES + TAG_BYTES))
        self._in = memoryview(bytearray(HEAD_BYTES + PLAIN_BYTES + TAG_BYTES + HEAD_BYTES))
        self._in[: len(came)] = came
        self._held = len(came)
        self._unsent = self._out[:0]

    def write(self, data: memoryview) -> bool:
        """Send it once all before it has gone; returns whether it has, too. Raises OSError. data: from 1 byte to
        PLAIN_BYTES."""
        end = HEAD_BYTES + len(data) + TAG_BYTES
        cipher, nonce = self._own.next()
        self._out[:HEAD_BYTES] = len(data).to_bytes(HEAD_BYTES, "big")
        cipher.encrypt_into(nonce, data, self._out[:HEAD_BYTES], self._out[HEAD_BYTES:end])
        self._unsent = self._out[:end]
        return self.flush()

    def flush(self) -> bool:
        """Send what can be sent now of what is left; returns whether nothing is. Raises OSError."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self.raw.send(self._unsent) :]
        except BlockingIOError:
            return False
        return True

    def open_into(self, buffer: memoryview) -> int:
        """Read until a record is whole, and open all that are; returns how many bytes that is, perhaps none. Raises
        OSError: at the end, and for what does not open. buffer: for `buffer_bytes`."""
        try:
            while not (count := self._opened(buffer)):
                if not (more := self.raw.recv_into(self._in[self._held :])):
                    raise ConnectionResetError("The other side has ended the connection.")
                self._held += more
        except BlockingIOError:
            pass
        return count

    def close(self) -> None:
        """End it now."""
        self.raw.close()

    def _opened(self, buffer: memoryview) -> int:
        start = count = 0
        while (body := start + HEAD_BYTES) <= self._held:
            length = int.from_bytes(self._in[start:body], "big")
            if not 0 < length <= PLAIN_BYTES:
                raise ConnectionAbortedError(f"A sealed record of {length} bytes came; the limit is {PLAIN_BYTES}.")
            if (end := body + length + TAG_BYTES) > self._held:
                break
            cipher, nonce = self._other.next()
            try:
                cipher.decrypt_into(nonce, self._in[body:end], self._in[start:body], buffer[count : count + length])
            except InvalidTag:
                raise ConnectionAbortedError("A record came that the other side has not sent so.") from None
            start, count = end, count + length
        if start:
            self._in[: self._held - start] = self._in[start : self._held]
            self._held -= start
        return count
